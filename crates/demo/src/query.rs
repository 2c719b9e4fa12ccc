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
const OFFER_WORDS: &str = "\
offer offers deal deals coupon coupons discount discounts promo promotion promotions sale sales \
bargain bargains product products price prices buy shop shopping cheap cheaper save savings \
angebot angebote angeboten rabatt rabatte gutschein gutscheine aktion aktionen schnappchen \
produkt produkte preis preise kaufen einkaufen gunstig gunstige gunstiger sparen billig billige \
oferta ofertas descuento descuentos cupon cupones promocion promociones ganga gangas producto \
productos precio precios comprar barato barata baratos baratas ahorrar rebajas";

/// Stop words: words of sentences, and the words of other sub-agents.
const STOP_WORDS: &str = "\
a about again all also am an and another any anything are around as at available bad be because \
been best better big bit but by can check could current currently cool day dear did do does doing \
done everything fetch few find first for found friend from get give go going good got great had \
has have hello help her here hey hi his how i if im in interesting into is it its just kind know \
latest let like list little local looking look lot love lots make many may me might mine more most \
much my near need new nice no not now of off ok okay on one only open or order orders other our \
out over please put really recommend right running see seen sell shall she should show so some \
someone something soon special specials still store stores suggest suggestions sure take tell \
thanks thank that the their them then there these they thing things think this those three to \
today tomorrow top two up us use usual usually very want was way we week weekend well were what \
whats when where which who why will wish with work would wow yes yesterday you your \
balance points point reward rewards loyalty tier bonus receipt receipts scan scanned purchase \
purchases bought spent refund return returns delivery deliver delivered account password login \
support problem issue late missing crash hang partial slow slowly outage broken status many left \
aber alle alles als am an andere auch auf aus bei beim bin bis bist bitte brauche da dann das dass \
dein deine dem den denn der des die dies diese dieser doch du ein eine einem einen einer eines er \
es etwas euch euer fur gab gibt gerade gern gerne gut gute guten guter haben habe hab hallo hast \
hat heute hier ich ihr ihre im in ist ja jetzt kann kannst kein keine konnen konnte mal man mehr \
mein meine meinem meinen meiner mich mir mit mochte moin nach nein neu neue neuen neues nicht noch \
nur oder ohne schon sehe sehen sein sie sind so such suche suchen tag uber um und uns unter viel \
viele vom von vor war was welche welches wenn wer wie wieder will wir wo woche wurde zeig zeige \
zeigen zu zum zur danke super tolle toll beste besten laden laeden markt morgen \
punkte punktestand punkten guthaben kontostand pramie pramien bonuspunkte kassenbon kassenbons \
bon bons quittung quittungen beleg belege einkauf einkaufe gekauft bestellung bestellungen \
lieferung erstattung konto hilfe passwort letzte letzten letzter gesammelt \
al algo alguna algunas alguno algun algunos ahora aqui asi aun bien buen buena buenas bueno buenos \
busca buscar busco cada como con cual cuales cuando cuanto cuantos cuanta cuantas dame de del desde \
dime donde dos el ella en eres es esa ese eso esta estan estas este esto estos favor fue gracias \
gran grande ha hay haz hola hoy la las le les lo los mas me mejor mejores mi mis mostrar muchas \
mucho muestra muestrame muy necesito ni no nos nueva nuevas nuevo nuevos o otra otro para pero \
por porque puede puedes puedo pues que quiero quisiera se ser si sin sobre solo son soy su sus \
tal tambien te tengo tener ti tiene tienen tienes toda todas todo todos tu tus un una unas uno \
unos usted ver vez y ya yo semana tienda tiendas dia manana \
puntos punto saldo recompensa recompensas premio premios recibo recibos ticket tickets compra \
compras compre gaste pedido pedidos envio entrega reembolso devolucion cuenta ayuda contrasena \
ultimo ultimos ultima ultimas \
ubliche ubliches ublichen immer sonst siempre idea ideas ideen tonight hungry hunger hungrig hambre \
cook kochen cocinar food essen comida comer";

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
        let folded: String = text
            .flat_map(char::to_lowercase)
            .map(without_accent)
            .collect();
        let words = folded.split(|c: char| !c.is_alphanumeric());
        let words = words.filter(|word| !word.is_empty()).map(str::to_owned);
        Self {
            words: words.collect(),
        }
    }

    /// True if the query contains one of `listed`.
    pub(crate) fn contains_any(&self, listed: &[&str]) -> bool {
        self.words
            .iter()
            .any(|word| listed.contains(&word.as_str()))
    }

    /// True if the query contains the words of `name` next to each other.
    pub(crate) fn contains_phrase(&self, name: &str) -> bool {
        let name = Self::new(name.chars()).words;
        self.words
            .windows(name.len().max(1))
            .any(|words| *words == *name)
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
            let is_stop_word = listed(STOP_WORDS);
            let is_trigger = [OUTAGE_WORDS, BROKEN_WORDS, SLOW_WORDS, PARTIAL_WORDS]
                .iter()
                .any(|list| list.contains(&word));
            let is_short = word.chars().count() < 3;
            (!is_stop_word && !is_trigger && !is_short).then_some((word, WordKind::Product))
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
