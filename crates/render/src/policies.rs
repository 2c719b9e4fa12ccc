//! The rendering policies of a pack, which create a gate for each turn.
//!
//! The [`PolicyTable`] of each set of active flags is resolved once and cached, so that the gate of
//! a turn costs two small allocations. A turn keeps the table it started with, even if the pack
//! changes while the turn runs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use turnwire_event::metric;
use turnwire_event::port::EventGate;
use turnwire_pack::{FlagCohort, Pack, RenderOverride};

use crate::filter::{DenyList, TextFilter};
use crate::gate::TurnGate;
use crate::policy_table::PolicyTable;

/// The largest number of cached tables. Few flags override policies, so their combinations are
/// few too.
const TABLES_MAX: usize = 64;

/// Creates the [`TextFilter`] of one turn.
pub type FilterFactory = Arc<dyn Fn() -> Box<dyn TextFilter> + Send + Sync>;

/// The rendering policies of a pack, for any cohort and locale.
pub struct RenderPolicies {
    pack: Arc<Pack>,
    /// The flags that an override of the pack names, sorted.
    flags: Vec<String>,
    filter: Option<FilterFactory>,
    /// Cached tables by the active flags, as indexes into `flags`.
    tables: Mutex<HashMap<Vec<usize>, Arc<PolicyTable>>>,
}

impl RenderPolicies {
    /// The policies of `pack`. The orchestrator's deny list, if it has one, becomes the text
    /// filter.
    pub fn new(pack: Arc<Pack>) -> Self {
        let overrides = pack.overrides.iter();
        let mut flags: Vec<String> = overrides.map(|rule| rule.flag.clone()).collect();
        flags.sort();
        flags.dedup();
        let words = &pack.orchestrator.deny_words;
        let filter: Option<FilterFactory> = (!words.is_empty()).then(|| {
            let list = DenyList::new(words.iter().map(String::as_str));
            let create: FilterFactory = Arc::new(move || Box::new(list.clone()));
            create
        });
        Self {
            pack,
            flags,
            filter,
            tables: Mutex::default(),
        }
    }

    /// Replaces the deny list by another text filter.
    #[must_use]
    pub fn with_filter(mut self, filter: FilterFactory) -> Self {
        self.filter = Some(filter);
        self
    }

    /// The gate of one turn, for the flags of `cohort` and in the language `locale`.
    pub fn gate(&self, cohort: &FlagCohort, locale: &str) -> Box<dyn EventGate> {
        let filter = self.filter.as_ref().map(|create| create());
        Box::new(TurnGate::new(self.table(cohort), locale, filter))
    }

    /// A gate without a pack: every event has its default policy, and all statuses are withheld
    /// because none is registered.
    pub fn default_gate(definition: &str) -> Box<dyn EventGate> {
        let table = Arc::new(PolicyTable::plain(definition));
        Box::new(TurnGate::new(table, "en", None))
    }

    fn table(&self, cohort: &FlagCohort) -> Arc<PolicyTable> {
        let active = |flag: &usize| cohort.has(&self.flags[*flag]);
        let key: Vec<usize> = (0..self.flags.len()).filter(active).collect();
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = tables.get(&key) {
            return table.clone();
        }
        let table = Arc::new(self.resolve(cohort));
        if tables.len() >= TABLES_MAX {
            tables.clear();
        }
        tables.insert(key, table.clone());
        table
    }

    fn resolve(&self, cohort: &FlagCohort) -> PolicyTable {
        let definition = self.pack.versions(cohort).agent_definition;
        let dimensions = metric::dimensions(&definition);
        let size = self.pack.registry.entries.len();
        metrics::gauge!(metric::STREAM_REGISTRY_SIZE, &dimensions).set(size as f64);
        let overrides = self.pack.overrides.iter();
        let active: Vec<&RenderOverride> = overrides.filter(|o| cohort.has(&o.flag)).collect();
        PolicyTable::new(self.pack.clone(), &active, definition)
    }
}
