//! What a guest shows on the text screen of a PC: memory at B8000h, 80 columns of 25 lines.
//!
//! There is no display: the memory is plain RAM, and this is a picture of it. Source: IBM *Personal System/2 Hardware
//! Interface Technical Reference*, "Video Subsystem", alphanumeric modes.

/// Where the screen's memory starts.
pub const TEXT_SCREEN: u64 = 0xb_8000;
/// Its size: a character and its attribute for each place.
pub const TEXT_SCREEN_LEN: usize = TEXT_SCREEN_COLUMNS * LINES * 2;
/// Characters in a line.
pub const TEXT_SCREEN_COLUMNS: usize = 80;

const LINES: usize = 25;

/// Code page 437 from 80h on.
const HIGH: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀\
                    αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■ ";

fn character(code: u8) -> char {
    match code {
        0x20..=0x7e => char::from(code),
        0x80.. => HIGH.chars().nth(usize::from(code - 0x80)).unwrap_or(' '),
        _ => ' ',
    }
}

/// The screen as lines of text, without what is blank at their ends and at the screen's.
pub fn text_of(memory: &[u8]) -> String {
    let mut text = String::new();
    for line in memory.chunks(TEXT_SCREEN_COLUMNS * 2) {
        let shown: String = line.chunks(2).map(|place| character(place[0])).collect();
        text.push_str(shown.trim_end());
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_page_437_has_its_128_upper_characters() {
        assert_eq!(HIGH.chars().count(), 128);
        assert_eq!((character(0x80), character(0xb3), character(0xdb), character(0xfe)), ('Ç', '│', '█', '■'));
    }

    #[test]
    fn blank_ends_are_cut_and_inner_blank_lines_stay() {
        let mut memory = vec![0; TEXT_SCREEN_LEN];
        for (index, byte) in b"top".iter().enumerate() {
            memory[index * 2] = *byte;
        }
        memory[TEXT_SCREEN_COLUMNS * 4 + 2] = b'x';
        assert_eq!(text_of(&memory), "top\n\n x\n");
        assert_eq!(text_of(&[0; TEXT_SCREEN_LEN]), "");
    }
}
