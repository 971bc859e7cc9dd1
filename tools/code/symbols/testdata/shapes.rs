//! Shapes. fn commented() {}
/* outer /* nested fn hidden() {} */ still a comment fn hidden2() {} */
use std::fmt;

pub const MAX_SIDES: usize = 12;
static mut COUNTER: u32 = 0;
pub static NAMES: [&str; 2] = ["fn quoted() {", r#"struct Raw { "x" }"#];

#[derive(Debug, Clone)]
pub struct Point<'a, T: 'a> {
    pub x: T,
    pub y: &'a T,
}

struct Unit;
pub(crate) struct Pair(u32, pub char);

#[repr(u8)]
pub enum Kind {
    Circle { r: f64 },
    Square(f64),
    None = b'}',
}

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

pub trait Shape: fmt::Debug {
    const SIDES: usize;
    type Output;
    fn area(&self) -> f64;
    fn name(&self) -> String {
        String::from("}")
    }
}

impl<'a, T> Point<'a, T>
where
    T: Copy,
{
    pub const fn new(x: T, y: &'a T) -> Self {
        Point { x, y }
    }

    pub unsafe fn raw(&self) -> char {
        let c = '\'';
        let open = '{';
        c
    }
}

impl<'a, T: fmt::Debug> Shape for Point<'a, T> {
    const SIDES: usize = 1;
    type Output = T;
    fn area(&self) -> f64 {
        fn helper(x: f64) -> f64 {
            x
        }
        if true { helper(1.0) } else { match 1 { _ => 2.0 } }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", 1)
    }
}

pub mod geometry {
    pub fn distance<F>(f: F) -> f64
    where
        F: Fn(f64) -> f64,
    {
        let g = |x: f64| { f(x) };
        g(1.0)
    }

    pub(super) mod deep {
        pub async fn fetch() {}
    }
}

macro_rules! square {
    ($x:expr) => {{
        fn not_an_item() {}
        $x * $x
    }};
}

extern "C" {
    fn external(x: i32) -> i32;
}

pub extern "C" fn exported() {}

union Bits {
    i: u32,
    f: f32,
}

fn main() {
    let v: Vec<u32> = vec![1, 2, 3];
    println!("fn printed() {{}} {:?}", v);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws() {
        assert_eq!(1, 1);
    }
}
