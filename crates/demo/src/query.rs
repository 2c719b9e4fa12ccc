//! The words of a search query in English, German and Spanish: words that trigger a failure, stop words,
//! words that ask for offers in general, and words that may name a product.

/// Words that make the service answer with an error.
pub(crate) const OUTAGE_WORDS: &[&str] = &["outage", "ausfall", "averia"];
/// The same, except for support, where people report that something is broken.
pub(crate) const BROKEN_WORDS: &[&str] = &["broken", "kaputt", "roto", "rota", "rotas", "rotos"];
/// Words that delay the answer.
pub(crate) const SLOW_WORDS: &[&str] = &[
    "slow", "slowly", "langsam", "langsame", "lento", "lenta", "lentas", "lentos",
];
/// Words that make the service answer with half of its items.
pub(crate) const PARTIAL_WORDS: &[&str] = &["partial", "teilweise", "parcial", "parciales"];

/// Words that ask for offers without naming a product.
const OFFER_WORDS: &str = include_str!("query/offer_words.txt");

/// Stop words: words of sentences, and the words of other sub-agents.
const STOP_WORDS: &str = include_str!("query/stop_words.txt");

/// The role of a word in a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WordKind {
    /// Asks for offers in general.
    Offer,
    /// May name a product.
    Product,
}

/// A question as lower-case words without accents.
pub(crate) struct SearchQuery {
    words: Vec<String>,
}

impl SearchQuery {
    pub(crate) fn new(text: impl Iterator<Item = char>) -> Self {
        let folded = text.flat_map(char::to_lowercase).map(without_accent);
        let folded: String = folded.collect();
        let words = folded.split(|c: char| !c.is_alphanumeric());
        let words = words.filter(|word| !word.is_empty()).map(str::to_owned);
        Self {
            words: words.collect(),
        }
    }

    /// True if the query contains one of `listed`.
    pub(crate) fn contains_any(&self, listed: &[&str]) -> bool {
        let mut words = self.words.iter();
        words.any(|word| listed.contains(&word.as_str()))
    }

    /// True if the query contains the words of `name` next to each other.
    pub(crate) fn contains_phrase(&self, name: &str) -> bool {
        let name = Self::new(name.chars()).words;
        let mut phrases = self.words.windows(name.len().max(1));
        phrases.any(|words| *words == *name)
    }

    /// True if a word of the query begins with `prefix`; an empty prefix matches every query.
    pub(crate) fn has_prefix(&self, prefix: &str) -> bool {
        prefix.is_empty() || self.words.iter().any(|word| word.starts_with(prefix))
    }

    /// The words that matter to a search, in order.
    pub(crate) fn keywords(&self) -> Vec<(&str, WordKind)> {
        let keywords = self.words.iter().filter_map(|word| {
            let word = word.as_str();
            let listed = |list: &str| list.split_ascii_whitespace().any(|one| one == word);
            if listed(OFFER_WORDS) {
                return Some((word, WordKind::Offer));
            }
            let mut triggers = [OUTAGE_WORDS, BROKEN_WORDS, SLOW_WORDS, PARTIAL_WORDS].iter();
            let is_trigger = triggers.any(|list| list.contains(&word));
            let is_ignored = is_trigger || listed(STOP_WORDS) || word.chars().count() < 3;
            (!is_ignored).then_some((word, WordKind::Product))
        });
        keywords.collect()
    }

    /// The number of words of the query that match one of `names`.
    pub(crate) fn score(&self, names: &[&str]) -> usize {
        let keywords = self.keywords();
        let matches = |(word, _): &&(&str, WordKind)| names.iter().any(|name| is_name(word, name));
        keywords.iter().filter(matches).count()
    }
}

/// True if `word` is `name`, its plural, or a compound with it such as `hafermilch`.
fn is_name(word: &str, name: &str) -> bool {
    if name.len() >= 4 {
        return word.contains(name);
    }
    word.strip_prefix(name)
        .is_some_and(|ending| matches!(ending, "" | "s" | "es" | "n" | "en"))
}

/// The letter without its accent.
fn without_accent(c: char) -> char {
    match c {
        'á' | 'à' | 'â' | 'ä' => 'a',
        'é' | 'è' | 'ê' | 'ë' => 'e',
        'í' | 'ì' | 'î' | 'ï' => 'i',
        'ó' | 'ò' | 'ô' | 'ö' => 'o',
        'ú' | 'ù' | 'û' | 'ü' => 'u',
        'ñ' => 'n',
        'ß' => 's',
        other => other,
    }
}
