//! Integer instructions against straightforward models of them.

mod alu;
mod branch;
mod mov;
mod stack;
