//! VMX as its user sees it: guests run under controls, and what they make exit.

mod apic;
mod capability;
mod events;
mod guest;
mod instructions;
mod posted;
mod registers;
mod timing;
mod vm_functions;
