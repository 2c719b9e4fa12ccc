//! The policies of a pack, and a gate for each turn.
//!
//! What the flags of a cohort change is worked out once for each set of flags and kept, so that
//! the gate of a turn costs two small allocations. A turn keeps the table it was given, whatever
//! changes in the meantime.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use turnwire_event::metric;
use turnwire_event::port::Gate;
use turnwire_pack::{FlagCohort, Pack, RenderOverride};

use crate::filter::{DenyList, TextFilter};
use crate::gate::TurnGate;
use crate::table::Table;

/// Tables that are kept: flags that change what is shown are few, and so are their combinations.
const TABLES_MAX: usize = 64;

/// Makes the filter of a turn.
pub type Filters = Arc<dyn Fn() -> Box<dyn TextFilter> + Send + Sync>;

/// How the events of a pack's turns are shown.
pub struct Policies {
    pack: Arc<Pack>,
    /// The flags that change what is shown, sorted.
    flags: Vec<String>,
    filters: Option<Filters>,
    /// By the flags that are active, as places in `flags`.
    tables: Mutex<HashMap<Vec<usize>, Arc<Table>>>,
}

impl Policies {
    /// The policies of a pack. What the orchestrator says passes its deny list, if it has one.
    pub fn new(pack: Arc<Pack>) -> Self {
        let overrides = pack.overrides.iter();
        let mut flags: Vec<String> = overrides.map(|change| change.flag.clone()).collect();
        flags.sort();
        flags.dedup();
        let words = &pack.orchestrator.deny_words;
        let filters: Option<Filters> = (!words.is_empty()).then(|| {
            let list = DenyList::new(words.iter().map(String::as_str));
            let filters: Filters = Arc::new(move || Box::new(list.clone()));
            filters
        });
        Self {
            pack,
            flags,
            filters,
            tables: Mutex::default(),
        }
    }

    /// With another filter in place of the deny list.
    #[must_use]
    pub fn with_filters(mut self, filters: Filters) -> Self {
        self.filters = Some(filters);
        self
    }

    /// The gate of a turn of this cohort, in this language.
    pub fn gate(&self, cohort: &FlagCohort, locale: &str) -> Box<dyn Gate> {
        let filter = self.filters.as_ref().map(|make| make());
        Box::new(TurnGate::new(self.table(cohort), locale, filter))
    }

    /// A gate without a pack: the defaults. No status is registered, so none is shown.
    pub fn plain(definition: &str) -> Box<dyn Gate> {
        let table = Arc::new(Table::plain(definition));
        Box::new(TurnGate::new(table, "en", None))
    }

    fn table(&self, cohort: &FlagCohort) -> Arc<Table> {
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

    fn resolve(&self, cohort: &FlagCohort) -> Table {
        let definition = self.pack.versions(cohort).agent_definition;
        let dimensions = metric::dimensions(&definition);
        let size = self.pack.registry.entries.len();
        metrics::gauge!(metric::STREAM_REGISTRY_SIZE, &dimensions).set(size as f64);
        let overrides = self.pack.overrides.iter();
        let active: Vec<&RenderOverride> = overrides.filter(|o| cohort.has(&o.flag)).collect();
        Table::new(self.pack.clone(), &active, definition)
    }
}
