//! The platform's own texts, for packs that do not bring their own. First person, no codes.

pub(super) const TEXTS: [(&str, &str, &str); 12] = [
    ("en", "combined", "{phrases}…"),
    (
        "en",
        "failure.sub_agent",
        "I could not find out everything I wanted to, so something may be missing here.",
    ),
    (
        "en",
        "failure.internal",
        "Something went wrong on my side. Please try again.",
    ),
    (
        "en",
        "failure.rate_limit",
        "I have too much to do right now. Please try again in a moment.",
    ),
    ("de", "combined", "{phrases}…"),
    (
        "de",
        "failure.sub_agent",
        "Ich konnte nicht alles herausfinden, deshalb fehlt hier vielleicht etwas.",
    ),
    (
        "de",
        "failure.internal",
        "Bei mir ist etwas schiefgegangen. Bitte versuche es noch einmal.",
    ),
    (
        "de",
        "failure.rate_limit",
        "Ich habe gerade zu viel zu tun. Bitte versuche es gleich noch einmal.",
    ),
    ("es", "combined", "{phrases}…"),
    (
        "es",
        "failure.sub_agent",
        "No he podido averiguarlo todo, así que puede que falte algo aquí.",
    ),
    (
        "es",
        "failure.internal",
        "Algo ha fallado por mi parte. Inténtalo de nuevo, por favor.",
    ),
    (
        "es",
        "failure.rate_limit",
        "Ahora mismo tengo demasiado que hacer. Inténtalo de nuevo en un momento, por favor.",
    ),
];
