//! From bytes to blocks.

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction};
use silicon_memory::Frame;

use super::MOST_INSTRUCTIONS;
use crate::cost;
use crate::exec::undefined;
use crate::lower;
use crate::model::Model;
use crate::op::{CodeSize, Lowering, Op};

/// The longest instruction.
const LONGEST: usize = 15;

/// What decoding at the end of a page gave.
#[derive(Debug)]
pub enum Decoded {
    Block(Vec<Op>),
    /// The first instruction goes on in the next page.
    Crosses,
}

/// Decodes the block at `offset` of the page in `frame`.
#[must_use]
pub fn decode_block(frame: Frame, offset: usize, size: CodeSize, most: usize, model: &Model) -> Decoded {
    let mut bytes = [0_u8; MOST_INSTRUCTIONS * LONGEST];
    let len = bytes.len().min(4096 - offset);
    frame.read(offset, &mut bytes[..len]);
    let ops = decode(&bytes[..len], size, most.min(MOST_INSTRUCTIONS), model);
    match ops {
        Some(ops) => Decoded::Block(ops),
        None => Decoded::Crosses,
    }
}

/// Decodes the one instruction in `bytes`, which holds at least one whole instruction or [`LONGEST`] bytes.
#[must_use]
pub fn decode_one(bytes: &[u8], size: CodeSize, model: &Model) -> Vec<Op> {
    decode(bytes, size, 1, model).unwrap_or_else(|| vec![undefined_op(bytes, size, model)])
}

/// `None` when the first instruction needs more bytes than there are.
fn decode(bytes: &[u8], size: CodeSize, most: usize, model: &Model) -> Option<Vec<Op>> {
    let mut decoder = Decoder::with_ip(size.bits(), bytes, 0, DecoderOptions::NONE);
    let mut ops: Vec<Op> = Vec::with_capacity(8);
    let mut insn = Instruction::default();
    let mut previous = Instruction::default();
    while ops.len() < most && decoder.can_decode() {
        let off = decoder.position();
        decoder.decode_out(&mut insn);
        if insn.code() == Code::INVALID
            && decoder.last_error() == iced_x86::DecoderError::NoMoreBytes
            && bytes.len() - off < LONGEST
        {
            if ops.is_empty() {
                return None;
            }
            break;
        }
        let lowering = Lowering { insn: &insn, bytes: &bytes[off..off + insn.len()], size, off: off as u16, model };
        let known = insn.code() != Code::INVALID;
        let mut op =
            known.then(|| lower::lower(&lowering)).flatten().unwrap_or_else(|| lowering.op_without_operands(undefined));
        let undefined = op.exec as usize == undefined as *const () as usize;
        if !undefined {
            op.chain = lower::chain::of(&lowering, &op);
            if let Some(last) = ops.last_mut() {
                let before = Lowering { insn: &previous, bytes: &[], size, off: last.off, model };
                last.chain = lower::chain::with_branch(&before, last, &insn).unwrap_or(last.chain);
            }
        }
        op.idx = ops.len() as u8;
        op.cost = cost::table::of(&insn);
        ops.push(op);
        if undefined || insn.flow_control() != FlowControl::Next || lower::ends_block(&insn) {
            break;
        }
        std::mem::swap(&mut insn, &mut previous);
    }
    Some(ops)
}

fn undefined_op(bytes: &[u8], size: CodeSize, model: &Model) -> Op {
    let insn = Instruction::default();
    let lowering = Lowering { insn: &insn, bytes, size, off: 0, model };
    lowering.op_without_operands(undefined)
}
