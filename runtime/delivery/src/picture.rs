//! The chart in a mail: a line over time, as a PNG.

use plotters::prelude::{BitMapBackend, ChartBuilder, IntoDrawingArea as _, LineSeries, RGBColor, WHITE};

/// Width and height in pixels: twice the displayed size, for high-resolution screens.
const SIZE: (u32, u32) = (960, 160);
const INK: RGBColor = RGBColor(31, 111, 235);

/// An error of drawing a picture.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DrawError {
    /// The chart could not be drawn.
    #[error("{0}")]
    Line(String),
    /// The PNG could not be encoded.
    #[error(transparent)]
    Encoding(#[from] png::EncodingError),
}

/// Draws values from 0 to 1,000 as a line from left to right, and returns a PNG.
pub(crate) fn draw(heights: &[u16]) -> Result<Vec<u8>, DrawError> {
    let mut pixels = vec![0; SIZE.0 as usize * SIZE.1 as usize * 3];
    line(&mut pixels, heights).map_err(|error| DrawError::Line(error.to_string()))?;
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, SIZE.0, SIZE.1);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(&pixels)?;
    Ok(file)
}

fn line(pixels: &mut [u8], heights: &[u16]) -> Result<(), Box<dyn std::error::Error>> {
    let area = BitMapBackend::with_buffer(pixels, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let last = heights.len().saturating_sub(1).max(1);
    let mut chart = ChartBuilder::on(&area)
        .margin(8)
        .build_cartesian_2d(0..last, 0_i32..1_000)?;
    let points = heights
        .iter()
        .enumerate()
        .map(|(at, height)| (at, i32::from(*height)));
    let ink = plotters::style::ShapeStyle {
        color: INK.into(),
        filled: false,
        stroke_width: 3,
    };
    chart.draw_series(LineSeries::new(points, ink))?;
    area.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_rises_from_the_lower_left_to_the_upper_right() {
        let file = draw(&[0, 500, 1_000]).expect("it can be drawn");
        let mut reader = png::Decoder::new(std::io::Cursor::new(file))
            .read_info()
            .expect("it is a PNG");
        let mut pixels = vec![0; reader.output_buffer_size().expect("its size is known")];
        reader.next_frame(&mut pixels).expect("it can be read");
        let (width, height) = (SIZE.0 as usize, SIZE.1 as usize);
        let is_inked = |x: usize, y: usize| pixels[(y * width + x) * 3] < 128;
        let first = (0..height).find(|y| is_inked(20, *y)).expect("the line begins");
        let last = (0..height)
            .find(|y| is_inked(width - 20, *y))
            .expect("the line ends");
        assert!(first > height * 3 / 4 && last < height / 4, "{first} {last}");
    }
}
