//! The exit trace: one line per VM-exit, tab separated, for `--trace FILE`.

use std::io::{self, Write};

/// One VM-exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRecord {
    pub vcpu: usize,
    /// VM time since power-on.
    pub guest_time_ns: u64,
    /// Basic exit reason (Intel SDM, "VMX Basic Exit Reasons").
    pub reason: u16,
    pub reason_name: &'static str,
    /// Exit qualification, zero where the reason has none.
    pub qualification: u64,
    /// Guest RIP at the exit.
    pub rip: u64,
}

/// Writes trace records with a header line.
pub struct TraceWriter<W: Write> {
    out: W,
    failed: Option<io::Error>,
}

impl<W: Write> TraceWriter<W> {
    /// Writes the header at once, so that an unwritable file shows before the guest starts.
    pub fn new(mut out: W) -> io::Result<Self> {
        writeln!(out, "guest_time_ns\tvcpu\treason\tname\tqualification\trip")?;
        Ok(Self { out, failed: None })
    }

    /// Writes one record; after a failure, keeps the first error and writes nothing more.
    pub fn record(&mut self, record: &TraceRecord) {
        if self.failed.is_some() {
            return;
        }
        let TraceRecord { vcpu, guest_time_ns, reason, reason_name, qualification, rip } = record;
        if let Err(error) =
            writeln!(self.out, "{guest_time_ns}\t{vcpu}\t{reason}\t{reason_name}\t{qualification:#x}\t{rip:#x}")
        {
            self.failed = Some(error);
        }
    }

    /// Flushes, and tells of the first record that could not be written.
    pub fn finish(&mut self) -> io::Result<()> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_line_under_the_header() {
        let mut out = Vec::new();
        let mut writer = TraceWriter::new(&mut out).unwrap();
        writer.record(&TraceRecord {
            vcpu: 1,
            guest_time_ns: 12,
            reason: 30,
            reason_name: "IO_INSTRUCTION",
            qualification: 0x3f8_0000,
            rip: 0x1000,
        });
        writer.finish().unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "guest_time_ns\tvcpu\treason\tname\tqualification\trip\n12\t1\t30\tIO_INSTRUCTION\t0x3f80000\t0x1000\n"
        );
    }

    #[test]
    fn a_full_disk_is_told_at_the_end() {
        struct Full(usize);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                if self.0 == 0 {
                    return Err(io::ErrorKind::StorageFull.into());
                }
                let taken = bytes.len().min(self.0);
                self.0 -= taken;
                Ok(taken)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut writer = TraceWriter::new(Full(60)).unwrap();
        let record =
            TraceRecord { vcpu: 0, guest_time_ns: 0, reason: 0, reason_name: "", qualification: 0, rip: 0 };
        writer.record(&record);
        writer.record(&record);
        assert_eq!(writer.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
