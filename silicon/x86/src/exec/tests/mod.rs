//! Integer instructions against straightforward models of them.

mod alu;
mod bit;
mod branch;
mod mov;
mod multiply;
mod shift;
mod stack;
mod string;
