//! Pack files in, checked values out, every mistake with its position.
//!
//! A pack is a folder: all that a team writes to put its agents on the platform. `check` reads
//! all of it and answers with a [`Pack`] in which every name points at something, or with every
//! mistake at once: file, line, column, what is wrong, what to write instead.

mod digest;
mod wording;

pub mod yaml;
mod finding;
pub mod complexity;
mod files;
mod definition;
mod registry;
mod piece;
mod tool;
mod locale;
mod rule;
mod flag;
mod provider;
mod route;
mod price;
mod model;
mod pack;
mod source;
pub mod schema;
mod check;

pub use check::{Report, check};
pub use definition::{Definition, History, Kind, OnCancel, SubAgentRef};
pub use files::{Files, ReadError};
pub use finding::{Finding, Level};
pub use flag::{Cohort, Flag, Rollout};
pub use locale::{Line, Locales};
pub use model::ModelUse;
pub use pack::{Limits, Pack};
pub use piece::{Piece, is_plain, pieces};
pub use price::{PriceDef, PriceTable};
pub use provider::{DialectName, KeyRef, ParamsDef, ProviderDef, RetriesDef, TimeoutsDef};
pub use registry::{Entry, Lifecycle, Registry};
pub use route::{Choice, RoutingPolicy, RoutingRule, When};
pub use rule::{Override, Target};
pub use tool::{
    Enricher, Function, HttpDef, McpServer, McpTransport, Method, Output, ProcessDef,
    ProcessLimits, Service, Shape, Stdin, ToolDef, ToolKind,
};
pub use wording::{closest_name, one_line, quoted_list};
