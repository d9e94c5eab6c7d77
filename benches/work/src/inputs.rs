//! Inputs of the work, and what must come out.

use serde_json::{Value, json};

/// The kinds of rows.
pub const TAGS: [&str; 4] = ["new", "paid", "sent", "done"];

/// The numbers of W1; the condition holds for them.
pub const CONDITION: [(&str, f64); 6] = [
    ("a", 3.5),
    ("b", 4.0),
    ("c", 9.0),
    ("d", 2.0),
    ("e", 7.0),
    ("f", 4.0),
];

/// The sum of W2.
pub fn sum_of_remainders(turns: u32) -> f64 {
    let turns = 0..u64::from(turns);
    turns.map(|i| (i * i % 7) as f64).sum()
}

/// The sum of W2d, each addition rounded as the loop does it.
pub fn sum_of_squares(turns: u32) -> f64 {
    let turns = 0..u64::from(turns);
    turns.map(|i| (i * i) as f64).sum()
}

/// A Fibonacci number.
pub fn fibonacci(n: u32) -> f64 {
    let (mut a, mut b) = (0_u64, 1_u64);
    for _ in 0..n {
        (a, b) = (b, a + b);
    }
    a as f64
}

/// The calls that a function makes that finds it by calling itself, the first included.
pub fn fibonacci_calls(n: u32) -> u64 {
    2 * fibonacci(n + 1) as u64 - 1
}

/// What W4 finds: the sum of the large totals, and how many there are of each kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rows {
    /// The sum.
    pub sum: f64,
    /// For each of [`TAGS`].
    pub counts: [f64; 4],
}

/// What W4 must find.
pub fn rows(n: u32) -> Rows {
    let mut found = Rows {
        sum: 0.0,
        counts: [0.0; 4],
    };
    for i in 0..n {
        let (price, quantity) = (f64::from(i % 97) + 0.5, f64::from(i % 5 + 1));
        let total = price * quantity;
        if total > 50.0 {
            found.sum += total;
            found.counts[i as usize % 4] += 1.0;
        }
    }
    found
}

/// The text of W5: words of 20 letters.
pub fn text(words: u32) -> String {
    let words: Vec<String> = (0..words).map(|i| format!("the-word-{i:011}")).collect();
    words.join(" ")
}

/// What W5 must make of it.
pub fn page(text: &str) -> String {
    let lines: Vec<String> = text
        .split(' ')
        .map(|word| format!("<li>{word}</li>"))
        .collect();
    lines.join("\n")
}

/// The document of W6.
pub fn orders(n: u32) -> String {
    let orders: Vec<Value> = (0..n)
        .map(|i| {
            json!({
                "id": i, "customer": format!("customer {i}"), "total": f64::from(i) * 1.25 + 0.25,
                "note": "leave it \"at the door\"",
                "lines": [{"sku": "a-1", "n": 2}, {"sku": "b-2", "n": 1}],
            })
        })
        .collect();
    Value::from(orders).to_string()
}

/// Whether W6 wrote what it must: the picked members, `seen`, and how many members the
/// order had. The order of members and the form of numbers are an engine's own.
///
/// # Panics
/// If not.
pub fn check_orders(written: &str, n: u32) {
    let found: Value = serde_json::from_str(written).expect("JSON");
    let found = found.as_array().expect("a list");
    assert_eq!(found.len(), n as usize);
    for (i, order) in found.iter().enumerate() {
        assert_eq!(order["id"].as_f64(), Some(i as f64));
        assert_eq!(order["customer"], format!("customer {i}"));
        assert_eq!(order["total"].as_f64(), Some(i as f64 * 1.25 + 0.25));
        assert_eq!(
            (order["seen"].clone(), order["fields"].as_f64()),
            (Value::Bool(true), Some(5.0))
        );
        assert_eq!(order.as_object().map(serde_json::Map::len), Some(5));
    }
}

/// What the agent of ten steps must find: `net`, `count`, `text`, `label`, `joined`.
#[derive(Clone, Debug, PartialEq)]
pub struct TenSteps {
    /// The sum to pay.
    pub net: f64,
    /// How many tags there are.
    pub count: f64,
    /// A templated text.
    pub text: String,
    /// The name in capitals.
    pub label: String,
    /// The tags.
    pub joined: String,
}

impl TenSteps {
    /// The name that goes in.
    pub const NAME: &str = "Ada";
    /// The price that goes in.
    pub const PRICE: f64 = 12.5;
    /// The quantity that goes in.
    pub const QUANTITY: f64 = 10.0;
    /// The tags that go in.
    pub const TAGS: [&str; 3] = ["a", "b", "c"];

    /// Compares what was found with what must be found.
    ///
    /// # Panics
    /// If it is something else.
    pub fn check(&self) {
        assert_eq!((self.net, self.count), (112.5, 3.0));
        assert_eq!(self.text, "Ada owes 112.5");
        assert_eq!((&*self.label, &*self.joined), ("ADA", "a,b,c"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_as_large_as_they_say() {
        let mib = text(crate::Size::FULL.words).len() as f64 / f64::from(1 << 20);
        assert!((0.99..1.01).contains(&mib), "{mib}");
        let mb = orders(crate::Size::FULL.orders).len() as f64 / 1e6;
        assert!((1.9..2.1).contains(&mb), "{mb}");
    }

    #[test]
    fn calls_of_the_helper_are_counted() {
        fn fib(n: u32, calls: &mut u64) -> u32 {
            *calls += 1;
            if n < 2 {
                return n;
            }
            fib(n - 1, calls) + fib(n - 2, calls)
        }
        let mut calls = 0;
        assert_eq!(f64::from(fib(15, &mut calls)), fibonacci(15));
        assert_eq!(calls, fibonacci_calls(15));
    }
}
