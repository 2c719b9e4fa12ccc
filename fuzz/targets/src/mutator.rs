//! Inputs without a fuzzer: a corpus, changed again and again by a fixed sequence of random steps. The
//! same seed gives the same inputs on every machine.

/// Values that sit at the edges of numbers and of characters.
const EDGES: [&[u8]; 20] = [
    b"0",
    b"-1",
    b"1e999",
    b"-0.0",
    b"255",
    b"65536",
    b"4294967296",
    b"18446744073709551616",
    b"null",
    b"true",
    b"[]",
    b"{}",
    b"\"\"",
    b"\"\\u0000\"",
    b"\\ud800",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xa8",
    b"\xf0\x9f\xa6\x80",
    b"\r\n\r\n",
    b"\0",
];
/// The most changes between a seed and an input.
const STEPS_MAX: u64 = 6;
/// The longest part that is copied at once.
const PART_BYTES_MAX: usize = 64;

/// Makes inputs of a corpus.
#[derive(Debug)]
pub struct Mutator<'a> {
    corpus: &'a [Vec<u8>],
    bytes_max: usize,
    state: u64,
}

impl<'a> Mutator<'a> {
    /// Inputs of at most `bytes_max` bytes from `corpus`, which has at least one.
    pub fn new(corpus: &'a [Vec<u8>], bytes_max: usize, seed: u64) -> Self {
        assert!(!corpus.is_empty(), "a corpus has inputs");
        Self {
            corpus,
            bytes_max,
            // A state of 0 stays 0.
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        }
    }

    /// A seed after one to six changes, cut to the largest size.
    pub fn next_input(&mut self) -> Vec<u8> {
        let seed = self.below(self.corpus.len());
        let mut input = self.corpus[seed].clone();
        for _ in 0..=self.random() % STEPS_MAX {
            self.step(&mut input);
        }
        input.truncate(self.bytes_max);
        input
    }

    /// Xorshift: enough for inputs, and the same everywhere.
    fn random(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    /// A number below `end`; 0 if `end` is 0.
    fn below(&mut self, end: usize) -> usize {
        (self.random() % end.max(1) as u64) as usize
    }

    /// A part of `bytes`.
    fn part(&mut self, bytes: &[u8]) -> std::ops::Range<usize> {
        let start = self.below(bytes.len() + 1);
        let length = self.below(PART_BYTES_MAX.min(bytes.len() - start) + 1);
        start..start + length
    }

    fn step(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        match self.random() % 10 {
            0 if at < input.len() => input[at] ^= 1 << self.below(8),
            1 if at < input.len() => input[at] = self.random() as u8,
            2 => input.insert(at, self.random() as u8),
            3 => {
                let part = self.part(input);
                input.drain(part);
            }
            4 => {
                let part = self.part(input);
                let copy = input[part].to_vec();
                self.put(input, at, &copy);
            }
            5 => {
                let other = self.below(self.corpus.len());
                let other = &self.corpus[other];
                let part = self.part(other);
                self.put(input, at, &other[part]);
            }
            6 => {
                // A whole line of another seed: formats of lines stay readable.
                let other = self.below(self.corpus.len());
                let lines: Vec<&[u8]> = self.corpus[other]
                    .split_inclusive(|byte| *byte == b'\n')
                    .collect();
                let line = self.below(lines.len());
                if let Some(line) = lines.get(line) {
                    let at = input[..at]
                        .iter()
                        .rposition(|byte| *byte == b'\n')
                        .map_or(0, |end| end + 1);
                    self.put(input, at, line);
                }
            }
            7 => {
                // The next number becomes one at an edge.
                let start = input[at..]
                    .iter()
                    .position(u8::is_ascii_digit)
                    .map(|start| at + start);
                if let Some(start) = start {
                    let digits = input[start..]
                        .iter()
                        .take_while(|byte| byte.is_ascii_digit())
                        .count();
                    let edge = EDGES[self.below(EDGES.len())];
                    input.splice(start..start + digits, edge.iter().copied());
                }
            }
            8 => input.truncate(at),
            _ => {
                let edge = EDGES[self.below(EDGES.len())];
                self.put(input, at, edge);
            }
        }
    }

    fn put(&mut self, input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
        let room = self.bytes_max.saturating_sub(input.len());
        let bytes = &bytes[..bytes.len().min(room)];
        input.splice(at..at, bytes.iter().copied());
    }
}
