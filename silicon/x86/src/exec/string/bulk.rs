//! Many elements in one piece, upwards, inside of one page of ordinary memory for each operand.

use silicon_memory::Word;

use super::element::{RAX, RDI, RSI, advance, linear};
use crate::core::access::Span;
use crate::exec::alu::{Alu, Sub};
use crate::mem::AccessKind;
use crate::op::{FLAT, Op};
use crate::{Core, Leave};

/// Shortest distance of overlapping operands, in elements, that is worth a copy of its own.
const NEAREST: u64 = 8;

/// The memory that register `slot` points to, and how many of `most` elements lie in it without reaching the end of
/// the page, of the segment, or of the address size.
fn run<T: Word, A: Word>(
    core: &mut Core,
    seg: u8,
    slot: u8,
    kind: AccessKind,
    most: u64,
) -> Result<Option<(Span, u64)>, Leave> {
    let at = linear::<T, A>(core, seg, slot, kind)?;
    if (at & 0xfff) + T::BYTES > 4096 {
        return Ok(None);
    }
    let Some(span) = core.span(at, kind, seg)? else {
        return Ok(None);
    };
    let mut count = most.min(span.len as u64 / T::BYTES);
    if seg & FLAT == 0 || A::BYTES < 8 {
        let offset = core.get::<A>(slot).to_u64();
        let top = u64::MAX >> (64 - A::BYTES * 8);
        // (Where the last element would end at the very top of the address size, it goes alone.)
        count = count.min((top - offset) / T::BYTES);
        if count > 0 && core.linear(seg, offset, count * T::BYTES, kind).is_err() {
            return Ok(None);
        }
    }
    Ok((count > 0).then_some((span, count)))
}

/// MOVS.
pub fn copy<T: Word, A: Word>(core: &mut Core, op: &Op, most: u64) -> Result<u64, Leave> {
    let Some((source, most)) = run::<T, A>(core, op.seg, RSI, AccessKind::Read, most)? else {
        return Ok(0);
    };
    let Some((target, mut count)) = run::<T, A>(core, op.b, RDI, AccessKind::Write, most)? else {
        return Ok(0);
    };
    if source.frame == target.frame && target.offset > source.offset {
        // Elements that were written are read again from `distance` on.
        let distance = (target.offset - source.offset) as u64 / T::BYTES;
        if distance < count && distance < NEAREST {
            return Ok(0);
        }
        count = count.min(distance);
    }
    let bytes = count * T::BYTES;
    target.frame.copy_from(target.offset, source.frame, source.offset, bytes as usize);
    advance::<A>(core, RSI, bytes);
    advance::<A>(core, RDI, bytes);
    Ok(count)
}

/// STOS.
pub fn fill<T: Word, A: Word>(core: &mut Core, op: &Op, most: u64) -> Result<u64, Leave> {
    let Some((target, count)) = run::<T, A>(core, op.b, RDI, AccessKind::Write, most)? else {
        return Ok(0);
    };
    let value = core.get::<T>(RAX);
    let low = value.to_u64() as u8;
    let bytes = count * T::BYTES;
    if value == T::from_u64(u64::from_ne_bytes([low; 8])) {
        target.frame.fill(target.offset, bytes as usize, low);
    } else {
        for i in 0..count {
            target.frame.store(target.offset as u64 + i * T::BYTES, value);
        }
    }
    advance::<A>(core, RDI, bytes);
    Ok(count)
}

/// Compares pairs until one's equality is not `go_on`; flags of the last pair, and how many.
fn compare_until<T: Word>(core: &mut Core, count: u64, go_on: Option<bool>, pair: impl Fn(u64) -> (T, T)) -> u64 {
    let mut last = count - 1;
    if let Some(go_on) = go_on {
        last = (0..last)
            .find(|&i| {
                let (a, b) = pair(i);
                (a == b) != go_on
            })
            .unwrap_or(last);
    }
    let (a, b) = pair(last);
    Sub::apply::<T>(&mut core.flags, a.to_u64(), b.to_u64());
    last + 1
}

/// CMPS.
pub fn compare<T: Word, A: Word>(core: &mut Core, op: &Op, most: u64, go_on: Option<bool>) -> Result<u64, Leave> {
    let Some((first, most)) = run::<T, A>(core, op.seg, RSI, AccessKind::Read, most)? else {
        return Ok(0);
    };
    let Some((second, count)) = run::<T, A>(core, op.b, RDI, AccessKind::Read, most)? else {
        return Ok(0);
    };
    let done = compare_until(core, count, go_on, |i| {
        let at = i * T::BYTES;
        (first.frame.load::<T>(first.offset as u64 + at), second.frame.load::<T>(second.offset as u64 + at))
    });
    advance::<A>(core, RSI, done * T::BYTES);
    advance::<A>(core, RDI, done * T::BYTES);
    Ok(done)
}

/// SCAS.
pub fn scan<T: Word, A: Word>(core: &mut Core, op: &Op, most: u64, go_on: Option<bool>) -> Result<u64, Leave> {
    let Some((string, count)) = run::<T, A>(core, op.b, RDI, AccessKind::Read, most)? else {
        return Ok(0);
    };
    let value = core.get::<T>(RAX);
    let done =
        compare_until(core, count, go_on, |i| (value, string.frame.load::<T>(string.offset as u64 + i * T::BYTES)));
    advance::<A>(core, RDI, done * T::BYTES);
    Ok(done)
}
