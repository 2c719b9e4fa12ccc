//! The words of a question, in English, German and Spanish: which ask for trouble, which are
//! only there to make a sentence, and which could name a thing.

/// Answers with an error.
pub(super) const OUTAGE: &[&str] = &["outage", "ausfall", "averia"];
/// The same, but not where people tell what is broken.
pub(super) const BROKEN: &[&str] = &["broken", "kaputt", "roto", "rota", "rotas", "rotos"];
/// Answers late.
pub(super) const SLOW: &[&str] = &[
    "slow", "slowly", "langsam", "langsame", "lento", "lenta", "lentas", "lentos",
];
/// Answers with half of it.
pub(super) const PARTIAL: &[&str] = &["partial", "teilweise", "parcial", "parciales"];

/// Words that ask for goods without naming any.
const DEAL: &str = "\
offer offers deal deals coupon coupons discount discounts promo promotion promotions sale sales \
bargain bargains product products price prices buy shop shopping cheap cheaper save savings \
angebot angebote angeboten rabatt rabatte gutschein gutscheine aktion aktionen schnappchen \
produkt produkte preis preise kaufen einkaufen gunstig gunstige gunstiger sparen billig billige \
oferta ofertas descuento descuentos cupon cupones promocion promociones ganga gangas producto \
productos precio precios comprar barato barata baratos baratas ahorrar rebajas";

/// Words that say nothing about goods: sentence words, and the words of other assistants.
const STOP: &str = "\
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

/// What a word is to a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Asks for goods.
    Deal,
    /// Could name a thing.
    Thing,
}

/// A question, cut into words without case and accents.
pub(super) struct Query {
    words: Vec<String>,
}

impl Query {
    pub(super) fn new(text: impl Iterator<Item = char>) -> Self {
        let folded: String = text.flat_map(char::to_lowercase).map(fold).collect();
        let words = folded.split(|c: char| !c.is_alphanumeric());
        let words = words.filter(|word| !word.is_empty()).map(str::to_owned);
        Self {
            words: words.collect(),
        }
    }

    /// Whether one of `listed` is among its words.
    pub(super) fn says(&self, listed: &[&str]) -> bool {
        self.words
            .iter()
            .any(|word| listed.contains(&word.as_str()))
    }

    /// Whether the words of `name` stand in it, one after the other.
    pub(super) fn names(&self, name: &str) -> bool {
        let name = Self::new(name.chars()).words;
        self.words
            .windows(name.len().max(1))
            .any(|words| *words == *name)
    }

    /// Whether one of its words begins with `name`; the empty name begins everything.
    pub(super) fn begins(&self, name: &str) -> bool {
        name.is_empty() || self.words.iter().any(|word| word.starts_with(name))
    }

    /// The words that mean something to a search, in order.
    pub(super) fn telling(&self) -> Vec<(&str, Kind)> {
        let telling = self.words.iter().filter_map(|word| {
            let word = word.as_str();
            let listed = |list: &str| list.split_ascii_whitespace().any(|one| one == word);
            if listed(DEAL) {
                return Some((word, Kind::Deal));
            }
            let filler = listed(STOP);
            let trouble = [OUTAGE, BROKEN, SLOW, PARTIAL]
                .iter()
                .any(|list| list.contains(&word));
            let short = word.chars().count() < 3;
            (!filler && !trouble && !short).then_some((word, Kind::Thing))
        });
        telling.collect()
    }

    /// How many of its words name something of `names`.
    pub(super) fn score(&self, names: &[&str]) -> usize {
        let telling = self.telling();
        let named = |(word, _): &&(&str, Kind)| names.iter().any(|name| names_it(word, name));
        telling.iter().filter(named).count()
    }
}

/// Whether `word` is `name`, its plural, or a compound with it such as `hafermilch`.
fn names_it(word: &str, name: &str) -> bool {
    if name.len() >= 4 {
        return word.contains(name);
    }
    word.strip_prefix(name)
        .is_some_and(|rest| matches!(rest, "" | "s" | "es" | "n" | "en"))
}

/// Letters with accents as most people type them without.
fn fold(c: char) -> char {
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
