//! Values of options.

use std::str::FromStr;

/// A size in bytes: `512M`, `1G`, `262144K`, or a plain number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text} is not a size; write a number with K, M or G, as in 512M");
        let (digits, shift) = match text.strip_suffix(|c: char| c.is_ascii_alphabetic()) {
            None => (text, 0),
            Some(digits) => match text.as_bytes()[digits.len()].to_ascii_uppercase() {
                b'K' => (digits, 10),
                b'M' => (digits, 20),
                b'G' => (digits, 30),
                _ => return Err(wrong()),
            },
        };
        let number: u64 = digits.parse().map_err(|_| wrong())?;
        number.checked_mul(1 << shift).map(Size).ok_or_else(|| format!("{text} is larger than any memory"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!("512M".parse(), Ok(Size(512 << 20)));
        assert_eq!("1g".parse(), Ok(Size(1 << 30)));
        assert_eq!("4096".parse(), Ok(Size(4096)));
        for wrong in ["", "M", "1.5G", "-1", "12Q", "99999999999G", "1ü"] {
            assert!(wrong.parse::<Size>().is_err(), "{wrong}");
        }
    }
}
