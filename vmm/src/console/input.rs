//! Reads standard input on a thread of its own, as a read may wait for ever.

use std::io::Read;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use crate::vm::Kicker;

/// Bytes of one read.
const CHUNK: usize = 4096;
/// Chunks that may wait: a fast pipe is held back, not collected in memory.
const CHUNKS_WAITING: usize = 16;

/// The receiving end.
pub struct InputThread {
    chunks: Receiver<Vec<u8>>,
    open: bool,
}

impl InputThread {
    /// Starts to read; each chunk sets the kicker, so that the guest notices soon.
    pub fn start(mut source: impl Read + Send + 'static, kicker: Kicker) -> std::io::Result<Self> {
        let (sender, chunks) = sync_channel(CHUNKS_WAITING);
        std::thread::Builder::new().name("console input".into()).spawn(move || {
            let mut buffer = [0; CHUNK];
            loop {
                match source.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(len) => {
                        if sender.send(buffer[..len].to_vec()).is_err() {
                            return;
                        }
                        kicker.kick();
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(_) => return,
                }
            }
        })?;
        Ok(Self { chunks, open: true })
    }

    /// Everything that was typed by now. All of it, as two chunks may come with one kick.
    pub fn take(&mut self) -> Vec<u8> {
        let mut typed = Vec::new();
        while self.open {
            match self.chunks.try_recv() {
                Ok(chunk) => typed.extend(chunk),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => self.open = false,
            }
        }
        typed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_chunk_stays_behind_after_a_kick() {
        let (sender, chunks) = sync_channel(CHUNKS_WAITING);
        sender.send(vec![3]).unwrap();
        sender.send(vec![0x1d, b's']).unwrap();
        let mut input = InputThread { chunks, open: true };
        assert_eq!(input.take(), [3, 0x1d, b's']);
        assert!(input.take().is_empty());
    }
}
