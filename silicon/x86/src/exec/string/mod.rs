//! String instructions ("String Instructions", "Repeat String Operation Prefix").
//!
//! One execution of a repeated instruction does one chunk: up to the end of the page of any operand, in one copy or fill
//! of host memory where nothing could tell the difference, else a few elements one by one. The registers are exact after
//! each element, so a fault, an event or a VM-exit in the middle finds the instruction ready to be resumed.

mod bulk;
mod element;
mod repeat;

pub use element::{Cmps, Lods, Movs, Once, Scas, Stos};
pub use repeat::{Rep, Repe, Repetition, Repne, once, repeat};
