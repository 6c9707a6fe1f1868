//! VMX as its user sees it: guests run under controls, and what they make exit.

mod apic;
mod capability;
mod events;
mod guest;
mod instructions;
mod posted;
mod random;
mod registers;
mod timing;
mod virtualization_exceptions;
mod vm_functions;
