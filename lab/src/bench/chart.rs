//! The picture: for each workload how many times as long as native each engine takes, on a logarithmic axis.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use thiserror::Error;

use super::engine::Engine;
use super::report::Report;

/// The picture could not be drawn.
#[derive(Debug, Error)]
#[error("cannot draw the chart: {0}")]
pub struct ChartError(String);

impl<E: std::error::Error + Send + Sync> From<DrawingAreaErrorKind<E>> for ChartError {
    fn from(error: DrawingAreaErrorKind<E>) -> Self {
        ChartError(error.to_string())
    }
}

const WIDTH: i32 = 900;
const LEFT: i32 = 130;
const RIGHT: i32 = 60;
const TOP: i32 = 78;
const BOTTOM: i32 = 40;
const BAR: i32 = 9;
const BAR_STEP: usize = BAR as usize;
const GAP: i32 = 10;
const FONT: &str = "sans-serif";
const INK: RGBColor = RGBColor(0x33, 0x33, 0x33);
const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);

/// Distinguishable with colour-blind eyes, and in grey.
fn colour(engine: Engine) -> RGBColor {
    match engine {
        Engine::Native => RGBColor(0x99, 0x99, 0x99),
        Engine::Tcg => RGBColor(0x56, 0xb4, 0xe9),
        Engine::Icount => RGBColor(0x00, 0x72, 0xb2),
        Engine::Real => RGBColor(0xe6, 0x9f, 0x00),
        Engine::Virtual => RGBColor(0xd5, 0x5e, 0x00),
    }
}

/// A logarithmic axis from a power of ten to a power of ten.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Axis {
    low: i32,
    high: i32,
}

impl Axis {
    fn around(values: &[f64]) -> Self {
        let log = values.iter().filter(|v| **v > 0.0 && v.is_finite()).map(|v| v.log10());
        let (least, most) = log.fold((0.0_f64, 1.0_f64), |(a, b), v| (a.min(v), b.max(v)));
        #[expect(clippy::cast_possible_truncation, reason = "a logarithm of an f64 is within ±324")]
        let (low, high) = (least.floor() as i32, most.ceil() as i32);
        Axis { low, high }
    }

    /// Horizontal position of a value in pixels.
    fn at(self, value: f64) -> i32 {
        let part = (value.log10() - f64::from(self.low)) / f64::from(self.high - self.low);
        #[expect(clippy::cast_possible_truncation, reason = "clamped to the picture")]
        let pixel = (part.clamp(0.0, 1.0) * f64::from(WIDTH - LEFT - RIGHT)).round() as i32;
        LEFT + pixel
    }
}

/// Two significant digits at least.
fn digits(ratio: f64) -> String {
    if ratio < 1.0 { format!("{ratio:.2}") } else { format!("{ratio:.1}") }
}

/// The chart as SVG text. Rows without a native time (a boot) are not in it. An empty string when no row has two engines.
pub fn svg(report: &Report) -> Result<String, ChartError> {
    let engines: Vec<Engine> = report.engines().into_iter().filter(|e| *e != Engine::Native).collect();
    let rows: Vec<&String> = report
        .rows
        .iter()
        .filter(|row| engines.iter().any(|e| report.ratio(row, *e, Engine::Native).is_some()))
        .collect();
    if rows.is_empty() {
        return Ok(String::new());
    }
    let ratios: Vec<f64> =
        rows.iter().flat_map(|row| engines.iter().filter_map(|e| report.ratio(row, *e, Engine::Native))).collect();
    let axis = Axis::around(&ratios);
    let count = |n: usize| i32::try_from(n).unwrap_or(i32::MAX / 1024);
    let step = count(engines.len()) * BAR + GAP;
    let bottom = TOP + step * count(rows.len());
    let size = (WIDTH.unsigned_abs(), (bottom + BOTTOM).unsigned_abs());

    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        root.fill(&WHITE)?;
        let label = |size: i32, h: HPos| (FONT, size).into_font().color(&INK).pos(Pos::new(h, VPos::Center));
        root.draw(&Text::new(
            "Wall time, times native (logarithmic; shorter is faster)",
            (LEFT, 20),
            label(17, HPos::Left),
        ))?;

        let mut x = LEFT;
        for engine in &engines {
            root.draw(&Rectangle::new([(x, 40), (x + 12, 52)], colour(*engine).filled()))?;
            root.draw(&Text::new(engine.title(), (x + 17, 46), label(13, HPos::Left)))?;
            x += 170;
        }
        for power in axis.low..=axis.high {
            let value = 10_f64.powi(power);
            let x = axis.at(value);
            root.draw(&PathElement::new([(x, TOP - 6), (x, bottom)], GRID))?;
            root.draw(&Text::new(format!("{value}x"), (x, bottom + 14), label(12, HPos::Center)))?;
        }
        let one = axis.at(1.0);
        for (row, top) in rows.iter().zip((TOP..).step_by(usize::try_from(step).unwrap_or(1))) {
            let middle = top + (step - GAP) / 2;
            root.draw(&Text::new(row.as_str(), (LEFT - 8, middle), label(13, HPos::Right)))?;
            for (engine, y) in engines.iter().zip((top..).step_by(BAR_STEP)) {
                let Some(ratio) = report.ratio(row, *engine, Engine::Native) else {
                    continue;
                };
                let x = axis.at(ratio);
                root.draw(&Rectangle::new([(one.min(x), y), (one.max(x), y + BAR - 1)], colour(*engine).filled()))?;
                root.draw(&Text::new(digits(ratio), (one.max(x) + 4, y + BAR / 2), label(9, HPos::Left)))?;
            }
        }
        root.draw(&PathElement::new([(one, TOP - 6), (one, bottom)], INK))?;
        root.present()?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::measure::Sample;
    use std::time::Duration;

    fn report(engines: &[(Engine, u64)]) -> Report {
        let mut report = Report { rows: vec!["boot".into(), "fib".into()], ..Report::default() };
        for (engine, ms) in engines {
            let sample = Sample { row: "fib".into(), wall: Duration::from_millis(*ms), guest_ns: None, checksum: None };
            report.add(*engine, vec![sample]);
        }
        report
    }

    #[test]
    fn axis_covers_the_values_in_whole_decades() {
        assert_eq!(Axis::around(&[3.0, 40.0]), Axis { low: 0, high: 2 });
        assert_eq!(Axis::around(&[0.5, 2.0]), Axis { low: -1, high: 1 });
        let axis = Axis { low: 0, high: 2 };
        assert_eq!((axis.at(1.0), axis.at(100.0)), (LEFT, WIDTH - RIGHT));
        assert_eq!(axis.at(10.0), i32::midpoint(LEFT, WIDTH - RIGHT));
    }

    #[test]
    fn chart_names_rows_and_engines_that_were_measured() {
        let text = svg(&report(&[(Engine::Native, 10), (Engine::Tcg, 60), (Engine::Virtual, 300)])).unwrap();
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
        for part in ["fib", "QEMU TCG", "Glassvisor, virtual time", "6.0", "30.0"] {
            assert!(text.contains(part), "'{part}' is not in the chart");
        }
        assert!(!text.contains("boot") && !text.contains("icount"));
    }

    #[test]
    fn no_chart_without_a_native_run() {
        assert_eq!(svg(&report(&[(Engine::Tcg, 60)])).unwrap(), "");
    }
}
