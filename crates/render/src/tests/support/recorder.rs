//! A metrics recorder for tests that keeps the sum of every series.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};

/// Sums by `name{label=value,…}`; empty labels are omitted.
#[derive(Clone, Default)]
pub(crate) struct CountingRecorder(Arc<Mutex<BTreeMap<String, f64>>>);

impl CountingRecorder {
    /// The sum over all series of a metric that have these labels.
    pub(crate) fn sum(&self, name: &str, labels: &[&str]) -> f64 {
        let sums = self.0.lock().expect("nobody panics with it");
        let matches = |key: &str| {
            key.split('{').next() == Some(name) && labels.iter().all(|label| key.contains(label))
        };
        let series = sums.iter().filter(|(key, _)| matches(key));
        series.map(|(_, sum)| sum).sum()
    }

    fn cell(&self, key: &Key) -> Arc<SeriesSum> {
        let labels = key.labels().filter(|label| !label.value().is_empty());
        let labels: Vec<String> = labels
            .map(|l| format!("{}={}", l.key(), l.value()))
            .collect();
        let key = format!("{}{{{}}}", key.name(), labels.join(","));
        Arc::new(SeriesSum(self.clone(), key))
    }
}

struct SeriesSum(CountingRecorder, String);

impl SeriesSum {
    fn add(&self, value: f64) {
        let mut sums = self.0.0.lock().expect("nobody panics with it");
        *sums.entry(self.1.clone()).or_default() += value;
    }
}

impl CounterFn for SeriesSum {
    fn increment(&self, value: u64) {
        self.add(value as f64);
    }
    fn absolute(&self, _: u64) {}
}

impl GaugeFn for SeriesSum {
    fn increment(&self, value: f64) {
        self.add(value);
    }
    fn decrement(&self, value: f64) {
        self.add(-value);
    }
    fn set(&self, value: f64) {
        let mut sums = self.0.0.lock().expect("nobody panics with it");
        sums.insert(self.1.clone(), value);
    }
}

impl HistogramFn for SeriesSum {
    /// Counts the recorded values.
    fn record(&self, _: f64) {
        self.add(1.0);
    }
}

impl Recorder for CountingRecorder {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.cell(key))
    }
    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.cell(key))
    }
    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.cell(key))
    }
}
