"""British spellings as American ones, made from stems and endings."""

from __future__ import annotations

from itertools import product

from .base import word_list

_OUR = (
    "arbour ardour armour behaviour candour clamour colour discolour dishonour endeavour favour fervour flavour "
    "glamour harbour honour humour labour neighbour odour parlour rancour rigour rumour saviour savour splendour "
    "succour tumour valour vapour vigour"
)
_OUR_ENDINGS = (
    "",
    *word_list("s ed ing ings er ers able ably ful fully less ite ites ism al ally hood hoods liness ly y ist ists"),
)
_ISE = (
    "agonis amortis anonymis antagonis apologis authoris baptis brutalis cannibalis capitalis categoris "
    "centralis characteris civilis colonis commercialis computeris criminalis criticis crystallis customis "
    "decentralis demonis deputis digitis diagonalis dramatis economis emphasis energis equalis eulogis familiaris "
    "fertilis finalis formalis fraternis generalis globalis harmonis hospitalis humanis hypnotis idolis immunis "
    "individualis industrialis initialis institutionalis internalis jeopardis legalis liberalis localis materialis "
    "maximis mechanis memoris minimis mobilis modernis monopolis moralis nationalis naturalis neutralis normalis "
    "optimis organis ostracis oxidis parametris penalis personalis plagiaris polaris politicis popularis pressuris "
    "prioritis privatis publicis randomis rationalis realis recognis regularis reorganis revitalis revolutionis "
    "romanticis sanitis scrutinis sensitis serialis socialis specialis stabilis standardis sterilis stigmatis "
    "subsidis summaris symbolis sympathis synchronis synthesis systematis tantalis terroris theoris tokenis traumatis "
    "utilis vandalis vaporis verbalis victimis visualis vocalis"
)
_ISE_ENDINGS = word_list("e es ed ing er ers ation ations ational able")
_LL = (
    "cancel channel counsel dial duel enamel equal fuel funnel grovel initial jewel label level libel marvel model "
    "panel pencil quarrel revel rival shovel signal snivel spiral swivel total towel travel tunnel unravel"
)
_LL_ENDINGS = word_list("ed ing er ers")
_RE = "calibre centre epicentre fibre goitre litre lustre metre meagre mitre ochre reconnoitre sabre "
_RE += "saltpetre sceptre sepulchre sombre spectre theatre amphitheatre kilometre centimetre millimetre micrometre "
_RE += "nanometre decimetre millilitre kilolitre centilitre"
_PAIRS = """
acknowledgement acknowledgment; adviser advisor; advisers advisors; aeroplane airplane; aeroplanes airplanes;
ageing aging; aluminium aluminum; amoeba ameba; anaemia anemia; anaemic anemic; anaesthesia anesthesia;
anaesthetic anesthetic; anaesthetics anesthetics; analyse analyze; analysed analyzed; analyser analyzer;
analysing analyzing; artefact artifact; artefacts artifacts; breathalyse breathalyze; catalyse catalyze;
catalysed catalyzed; catalogue catalog; catalogues catalogs; catalogued cataloged; cataloguing cataloging;
caesarean cesarean; cheque check; cheques checks; chequered checkered; chilli chili; cosy cozy; counsellor counselor;
counsellors counselors; councillor councilor; councillors councilors; defence defense; defences defenses;
dialogue dialog; dialogues dialogs; dialyse dialyze; diarrhoea diarrhea; disc disk; discs disks; doughnut donut;
doughnuts donuts; draught draft; draughts drafts; encyclopaedia encyclopedia; encyclopaedias encyclopedias;
enrol enroll; enrols enrolls; enrolment enrollment; enrolments enrollments; oesophagus esophagus; oestrogen estrogen;
faeces feces; foetal fetal; foetus fetus; fulfil fulfill; fulfils fulfills; fulfilment fulfillment;
gonorrhoea gonorrhea; gramme gram; grammes grams; grey gray; greys grays; greyish grayish; gynaecologist gynecologist;
gynaecology gynecology; haemoglobin hemoglobin; haemophilia hemophilia; haemorrhage hemorrhage;
haemorrhages hemorrhages; haemorrhoids hemorrhoids; homoeopathy homeopathy; instalment installment;
instalments installments; instil instill; jewellery jewelry; judgement judgment; judgements judgments; kerb curb;
kerbs curbs; leukaemia leukemia; licence license; licences licenses; liquorice licorice; manoeuvring maneuvering;
manoeuvred maneuvered; mould mold; moulds molds; mouldy moldy; moulded molded; moult molt; moustache mustache;
moustaches mustaches; offence offense; offences offenses; omelette omelet; omelettes omelets; orthopaedic orthopedic;
paediatric pediatric; paediatrician pediatrician; paediatricians pediatricians; paediatrics pediatrics;
palaeontology paleontology; paralyse paralyze; paralysed paralyzed; paralysing paralyzing; pedlar peddler;
plough plow; ploughed plowed; ploughing plowing; ploughs plows; practise practice; practised practiced;
practises practices; practising practicing; pretence pretense; programme program; programmes programs;
pyjamas pajamas; sceptic skeptic; sceptical skeptical; scepticism skepticism; sceptics skeptics; skilful skillful;
skilfully skillfully;
smoulder smolder; smouldering smoldering; storey story; storeys stories; sulphate sulfate;
sulphates sulfates; sulphide sulfide; sulphur sulfur; sulphuric sulfuric;
tranquillity tranquility; travelogue travelog; tyre tire; tyres tires; whisky whiskey; wilful willful;
wilfully willfully; woollen woolen; worshipped worshiped; worshipping worshiping; yoghurt yogurt; yoghurts yogurts;
judgemental judgmental; theatres theaters; ok okay; towards toward; afterwards afterward; amongst among;
whilst while; centring centering; manoeuvre maneuver; manoeuvres maneuvers;
likeable likable; sizeable sizable; saleable salable
"""


def _variants() -> dict[str, str]:
    table = dict(pair.split() for pair in _PAIRS.replace("\n", " ").split(";"))
    for stem, ending in product(_OUR.split(), _OUR_ENDINGS):
        table[stem + ending] = f"{stem[:-3]}or{ending}"
    for stem, ending in product(_ISE.split(), _ISE_ENDINGS):
        table[stem + ending] = f"{stem[:-1]}z{ending}"
    for stem, ending in product(_LL.split(), _LL_ENDINGS):
        table[f"{stem}l{ending}"] = stem + ending
    for word in _RE.split():
        table[word] = f"{word[:-2]}er"
        table[f"{word}s"] = f"{word[:-2]}ers"
        table[f"{word}d"] = f"{word[:-2]}ered"
    return table


AMERICAN = _variants()
