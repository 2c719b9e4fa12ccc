//! The rendering policies of a pack, which create a gate for each turn.
//!
//! The [`PolicyTable`] of each set of active flags is resolved once and cached, so that the gate of
//! a turn costs two small allocations. A turn keeps the table it started with, even if the pack
//! changes while the turn runs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use turnwire_event::metric::{self, TurnDimensions};
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

/// The kind of message and the active flags, as indexes into the flags of the policies.
type TableKey = (String, Vec<usize>);

/// The rendering policies of a pack, for any cohort and locale.
pub struct RenderPolicies {
    pack: Arc<Pack>,
    /// The flags that an override of the pack names and those of experiments, sorted.
    flags: Vec<String>,
    filter: Option<FilterFactory>,
    /// The tables of the cohorts that were seen.
    tables: Mutex<HashMap<TableKey, Arc<PolicyTable>>>,
}

impl RenderPolicies {
    /// The policies of `pack`. The orchestrator's deny list, if it has one, becomes the text
    /// filter.
    pub fn new(pack: Arc<Pack>) -> Self {
        let overrides = pack.overrides.iter();
        let mut flags: Vec<String> = overrides.map(|rule| rule.flag.clone()).collect();
        // These are labels of the metrics.
        flags.extend(pack.experiment_flags().into_iter().map(str::to_owned));
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

    /// The gate of one turn, for the flags of `cohort` and in the language `locale`. `dm_type` is a
    /// label of its metrics.
    pub fn gate(&self, cohort: &FlagCohort, locale: &str, dm_type: &str) -> Box<dyn EventGate> {
        let filter = self.filter.as_ref().map(|create| create());
        Box::new(TurnGate::new(self.table(cohort, dm_type), locale, filter))
    }

    /// A gate without a pack: every event has its default policy, and all statuses are withheld
    /// because none is registered.
    pub fn default_gate(definition: &str) -> Box<dyn EventGate> {
        let table = Arc::new(PolicyTable::plain(definition));
        Box::new(TurnGate::new(table, "en", None))
    }

    fn table(&self, cohort: &FlagCohort, dm_type: &str) -> Arc<PolicyTable> {
        let active = |flag: &usize| cohort.has(&self.flags[*flag]);
        let key = (
            dm_type.to_owned(),
            (0..self.flags.len()).filter(active).collect(),
        );
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = tables.get(&key) {
            return table.clone();
        }
        let table = Arc::new(self.resolve(cohort, dm_type));
        if tables.len() >= TABLES_MAX {
            tables.clear();
        }
        tables.insert(key, table.clone());
        table
    }

    fn resolve(&self, cohort: &FlagCohort, dm_type: &str) -> PolicyTable {
        let dimensions = TurnDimensions {
            agent_definition: self.pack.versions(cohort).agent_definition,
            dm_type: dm_type.to_owned(),
            experiment_arm: self.pack.experiment_arm(cohort),
            ..TurnDimensions::default()
        };
        // The registry belongs to the pack, not to a turn.
        let labels = metric::dimensions(&dimensions.agent_definition);
        let size = self.pack.registry.entries.len();
        metrics::gauge!(metric::STREAM_REGISTRY_SIZE, &labels).set(size as f64);
        let overrides = self.pack.overrides.iter();
        let active: Vec<&RenderOverride> = overrides.filter(|o| cohort.has(&o.flag)).collect();
        PolicyTable::new(self.pack.clone(), &active, dimensions)
    }
}
