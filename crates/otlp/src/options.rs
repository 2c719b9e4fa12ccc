//! The `OTEL_*` variables. An invalid value never stops the server: it is reported and the default is
//! used, as the specification asks; a server that cannot export says why and exports nothing.

use std::fmt::Debug;
use std::ops::RangeInclusive;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use turnwire_dial::{Dialer, RequestHeaders, Url};

use crate::sampler::Sampler;

/// The path below `OTEL_EXPORTER_OTLP_ENDPOINT`.
const TRACES_PATH: &str = "v1/traces";

/// Whether and how spans are exported.
#[derive(Clone, Debug)]
pub struct OtlpOptions {
    /// Where batches are posted.
    pub(crate) url: Url,
    /// Headers of every batch, with the key of the collector.
    pub(crate) headers: RequestHeaders,
    /// The time limit of one request.
    pub(crate) timeout: Duration,
    /// Which traces are recorded.
    pub sampler: Sampler,
    /// The attributes of this server.
    pub(crate) resource: Vec<(String, String)>,
    /// How long a span waits for a batch to be full.
    pub(crate) schedule_delay: Duration,
    /// The time limit of a batch with its retries.
    pub(crate) export_timeout: Duration,
    /// The most spans that wait.
    pub(crate) queue_spans: usize,
    /// The most spans of a batch.
    pub(crate) batch_spans: usize,
}

/// What the variables say, with what is wrong with them.
#[derive(Debug, Default)]
pub struct TraceSettings {
    /// `None` if this server exports nothing.
    pub options: Option<OtlpOptions>,
    /// A line for the log about each value that is not used.
    pub warnings: Vec<String>,
}

/// The variables while they are read.
struct Variables<'a> {
    lookup: &'a dyn Fn(&str) -> Option<String>,
    warnings: Vec<String>,
}

impl Variables<'_> {
    /// The value of the first of `names` that is set. An empty one is not set.
    fn first<'n>(&self, names: &[&'n str]) -> Option<(&'n str, String)> {
        names.iter().find_map(|name| {
            let value = (self.lookup)(name)?.trim().to_owned();
            (!value.is_empty()).then_some((*name, value))
        })
    }

    fn get(&self, name: &str) -> Option<String> {
        self.first(&[name]).map(|(_, value)| value)
    }

    /// A whole number within `range`.
    fn number(&mut self, names: &[&str], default: u64, range: RangeInclusive<u64>) -> u64 {
        let Some((name, text)) = self.first(names) else {
            return default;
        };
        match text.parse() {
            Ok(number) if range.contains(&number) => number,
            _ => {
                let (min, max) = range.into_inner();
                let rule = format!("must be a number from {min} to {max}; {default} is used");
                self.warn(name, &rule);
                default
            }
        }
    }

    /// Never the value, which may be a key.
    fn warn(&mut self, name: &str, rule: &str) {
        self.warnings.push(format!("{name} {rule}"));
    }

    /// `name=value` pairs, separated by commas, percent-encoded.
    fn pairs(&mut self, names: &[&str]) -> Vec<(String, String)> {
        let Some((variable, text)) = self.first(names) else {
            return Vec::new();
        };
        let decode = |text: &str| {
            let text = percent_decode_str(text.trim()).decode_utf8();
            text.ok().map(|text| text.into_owned())
        };
        let mut pairs = Vec::new();
        for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
            let pair = pair.split_once('=');
            match pair.and_then(|(name, value)| Some((decode(name)?, decode(value)?))) {
                Some((name, value)) if !name.is_empty() => pairs.push((name, value)),
                _ => self.warn(
                    variable,
                    "must be `name=value` pairs separated by commas; others are ignored",
                ),
            }
        }
        pairs
    }

    fn sampler(&mut self) -> Sampler {
        let Some(name) = self.get("OTEL_TRACES_SAMPLER") else {
            return Sampler::default();
        };
        let argument = self.get("OTEL_TRACES_SAMPLER_ARG").and_then(|text| {
            let ratio = text
                .parse()
                .ok()
                .filter(|ratio| (0.0..=1.0).contains(ratio));
            if ratio.is_none() && name.ends_with("traceidratio") {
                self.warn(
                    "OTEL_TRACES_SAMPLER_ARG",
                    "must be a ratio from 0 to 1; 1 is used",
                );
            }
            ratio
        });
        Sampler::named(&name, argument).unwrap_or_else(|| {
            self.warn(
                "OTEL_TRACES_SAMPLER",
                "is unknown; parentbased_always_on is used",
            );
            Sampler::default()
        })
    }

    /// The URL of the collector; `None` if no spans are to be exported.
    fn url(&mut self) -> Option<Url> {
        let own = self.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        let (name, text) = match own {
            Some(url) => ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url),
            None => {
                let name = "OTEL_EXPORTER_OTLP_ENDPOINT";
                let base = self.get(name)?;
                (
                    name,
                    format!("{}/{TRACES_PATH}", base.trim_end_matches('/')),
                )
            }
        };
        let url = Url::parse(&text).ok();
        let url = url.filter(|url| Dialer::check_url(url).is_ok());
        if url.is_none() {
            self.warn(
                name,
                "must be an http or https URL without a password; no traces are exported",
            );
        }
        url
    }

    /// False if the exporter that the variables ask for is not this one.
    fn is_enabled(&mut self) -> bool {
        if self
            .get("OTEL_SDK_DISABLED")
            .is_some_and(|text| text.eq_ignore_ascii_case("true"))
        {
            return false;
        }
        match self.get("OTEL_TRACES_EXPORTER").as_deref() {
            None | Some("otlp") => {}
            Some("none") => return false,
            Some(_) => {
                self.warn(
                    "OTEL_TRACES_EXPORTER",
                    "must be otlp or none; no traces are exported",
                );
                return false;
            }
        }
        let names = [
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
            "OTEL_EXPORTER_OTLP_PROTOCOL",
        ];
        match self.first(&names) {
            Some((name, protocol)) if protocol != "http/protobuf" => {
                self.warn(name, "must be http/protobuf; no traces are exported");
                false
            }
            _ => true,
        }
    }
}

impl TraceSettings {
    /// Reads the variables through `lookup`. Without an endpoint no spans are exported.
    pub fn read(lookup: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut variables = Variables {
            lookup,
            warnings: Vec::new(),
        };
        let endpoints = [
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "OTEL_EXPORTER_OTLP_ENDPOINT",
        ];
        if variables.first(&endpoints).is_none() || !variables.is_enabled() {
            return Self {
                options: None,
                warnings: variables.warnings,
            };
        }
        let options = variables.url().map(|url| variables.options(url));
        Self {
            options,
            warnings: variables.warnings,
        }
    }
}

impl Variables<'_> {
    fn options(&mut self, url: Url) -> OtlpOptions {
        for name in [
            "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION",
            "OTEL_EXPORTER_OTLP_COMPRESSION",
        ] {
            if self.get(name).is_some_and(|value| value != "none") {
                self.warn(name, "is not supported; spans are sent without compression");
            }
        }
        for name in [
            "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE",
            "OTEL_EXPORTER_OTLP_CERTIFICATE",
        ] {
            if self.get(name).is_some() {
                self.warn(
                    name,
                    "is not supported; the certificates of the system are used",
                );
            }
        }
        let headers = [
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
            "OTEL_EXPORTER_OTLP_HEADERS",
        ];
        let pairs = self.pairs(&headers);
        let pairs = pairs
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let headers = RequestHeaders::new(pairs).unwrap_or_else(|error| {
            self.warn(
                "OTEL_EXPORTER_OTLP_HEADERS",
                &format!("is not used: {error}"),
            );
            RequestHeaders::default()
        });
        let millis = Duration::from_millis;
        let timeouts = [
            "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
            "OTEL_EXPORTER_OTLP_TIMEOUT",
        ];
        let queue_spans = self.number(&["OTEL_BSP_MAX_QUEUE_SIZE"], 2_048, 1..=100_000);
        let batch_spans = self.number(&["OTEL_BSP_MAX_EXPORT_BATCH_SIZE"], 512, 1..=10_000);
        OtlpOptions {
            url,
            headers,
            timeout: millis(self.number(&timeouts, 10_000, 1..=600_000)),
            sampler: self.sampler(),
            resource: self.resource(),
            schedule_delay: millis(self.number(&["OTEL_BSP_SCHEDULE_DELAY"], 5_000, 1..=600_000)),
            export_timeout: millis(self.number(&["OTEL_BSP_EXPORT_TIMEOUT"], 30_000, 1..=600_000)),
            queue_spans: queue_spans as usize,
            batch_spans: batch_spans as usize,
        }
    }

    /// The attributes of this server: its own, then those of the variables, which win.
    fn resource(&mut self) -> Vec<(String, String)> {
        let version = env!("CARGO_PKG_VERSION");
        let own = [
            ("service.name", "turnwire"),
            ("service.version", version),
            ("telemetry.sdk.language", "rust"),
            ("telemetry.sdk.name", "turnwire"),
            ("telemetry.sdk.version", version),
        ];
        let mut attributes: Vec<(String, String)> = own
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let mut set = |name: String, value: String| match attributes
            .iter_mut()
            .find(|(known, _)| *known == name)
        {
            Some((_, old)) => *old = value,
            None => attributes.push((name, value)),
        };
        for (name, value) in self.pairs(&["OTEL_RESOURCE_ATTRIBUTES"]) {
            set(name, value);
        }
        if let Some(name) = self.get("OTEL_SERVICE_NAME") {
            set("service.name".to_owned(), name);
        }
        attributes
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn read(variables: &[(&str, &str)]) -> TraceSettings {
        let variables: HashMap<_, _> = variables.iter().copied().collect();
        TraceSettings::read(&|name| variables.get(name).map(|value| (*value).to_owned()))
    }

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318/otel/");

    #[test]
    fn nothing_is_exported_without_an_endpoint_or_when_disabled() {
        for off in [
            vec![],
            vec![("OTEL_EXPORTER_OTLP_ENDPOINT", " ")],
            vec![
                ("OTEL_TRACES_SAMPLER", "always_on"),
                ("OTEL_SERVICE_NAME", "shop"),
            ],
            vec![ENDPOINT, ("OTEL_SDK_DISABLED", "TRUE")],
            vec![ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")],
        ] {
            let settings = read(&off);
            assert!(settings.options.is_none(), "{off:?}");
            assert_eq!(settings.warnings, Vec::<String>::new(), "{off:?}");
        }
        for (name, value) in [
            ("OTEL_TRACES_EXPORTER", "console"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317"),
            (
                "OTEL_EXPORTER_OTLP_ENDPOINT",
                "http://user:secret@collector",
            ),
        ] {
            let settings = read(&[ENDPOINT, (name, value)]);
            assert!(settings.options.is_none(), "{name}");
            let [warning] = &settings.warnings[..] else {
                panic!("{:?}", settings.warnings)
            };
            assert!(
                warning.starts_with(name) && !warning.contains(value),
                "{warning}"
            );
        }
    }

    #[test]
    fn defaults_are_those_of_the_specification() {
        let options = read(&[ENDPOINT]).options.expect("on");
        assert_eq!(options.url.as_str(), "http://127.0.0.1:4318/otel/v1/traces");
        assert_eq!(options.timeout, Duration::from_secs(10));
        assert_eq!(options.schedule_delay, Duration::from_secs(5));
        assert_eq!(options.export_timeout, Duration::from_secs(30));
        assert_eq!((options.queue_spans, options.batch_spans), (2_048, 512));
        assert_eq!(options.sampler, Sampler::new(true, 1.0));
        assert_eq!(
            options.resource[0],
            ("service.name".into(), "turnwire".into())
        );
    }

    #[test]
    fn variables_of_traces_win_and_resources_are_merged() {
        let settings = read(&[
            ENDPOINT,
            (
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                "https://collector.example/in",
            ),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-general=1"),
            (
                "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
                "authorization=Bearer%20sk-1,x-team=blue",
            ),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "5000"),
            ("OTEL_SERVICE_NAME", "shop"),
            (
                "OTEL_RESOURCE_ATTRIBUTES",
                "service.name=other,deployment.environment.name=a%2Cb, ",
            ),
            ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.1"),
        ]);
        assert_eq!(settings.warnings, Vec::<String>::new());
        let options = settings.options.expect("on");
        assert_eq!(options.url.as_str(), "https://collector.example/in");
        assert_eq!(
            format!("{:?}", options.headers),
            r#"["authorization", "x-team"]"#
        );
        assert_eq!(options.timeout, Duration::from_secs(5));
        assert_eq!(options.sampler, Sampler::new(true, 0.1));
        let attribute = |name: &str| {
            let mut found = options.resource.iter().filter(|(known, _)| known == name);
            (found.next().map(|(_, value)| value.as_str()), found.count())
        };
        assert_eq!(attribute("service.name"), (Some("shop"), 0));
        assert_eq!(attribute("deployment.environment.name"), (Some("a,b"), 0));
    }

    #[test]
    fn invalid_values_are_reported_without_the_value() {
        let settings = read(&[
            ENDPOINT,
            ("OTEL_EXPORTER_OTLP_HEADERS", "sk-secret"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "0"),
            ("OTEL_TRACES_SAMPLER", "traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "7"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ]);
        let options = settings.options.expect("on");
        assert_eq!(
            (options.timeout, options.queue_spans),
            (Duration::from_secs(10), 2_048)
        );
        assert_eq!(options.sampler, Sampler::new(false, 1.0));
        let mut names: Vec<&str> = settings
            .warnings
            .iter()
            .filter_map(|w| w.split(' ').next())
            .collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "OTEL_BSP_MAX_QUEUE_SIZE",
                "OTEL_EXPORTER_OTLP_COMPRESSION",
                "OTEL_EXPORTER_OTLP_HEADERS",
                "OTEL_EXPORTER_OTLP_TIMEOUT",
                "OTEL_TRACES_SAMPLER_ARG",
            ]
        );
        assert!(!settings.warnings.concat().contains("secret"));
    }
}
