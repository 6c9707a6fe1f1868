//! Execution of instructions, one file a family.
