//! Writes the built-in guest, or a small case in another mode, to a file: to run it on other machines, such as
//! `qemu-system-x86_64 -kernel guest.elf -device isa-debug-exit,iobase=0xf4 -serial stdio -display none`.

use guest_bare::{Mode, builtin_guest, case, console};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), kind) = (arguments.next(), arguments.next()) else {
        return Err("usage: image FILE [real|protected|long]".into());
    };
    let hello = |mode, text: &str| {
        case(mode, |a| {
            console::print(a, text)?;
            console::exit(a, 0x20)
        })
    };
    let image = match kind.as_deref() {
        None => builtin_guest(),
        Some("real") => hello(Mode::Real16, "real mode\n")?,
        Some("protected") => hello(Mode::Protected32, "protected mode\n")?,
        Some("long") => hello(Mode::Long64, "long mode\n")?,
        Some(other) => return Err(format!("{other}: not one of real, protected, long").into()),
    };
    std::fs::write(path, image)?;
    Ok(())
}
