"""What the page says, in each language of its interface. Names of systems, metrics and settings are not translated.

`{n}` and the like are filled in by the page. The page takes a text from here and nowhere else.
"""

from __future__ import annotations

from typing import Final

UI_LANGUAGES: Final = ("en", "zh", "es")

_ROWS: Final[tuple[tuple[str, str, str, str], ...]] = (
    # The frame.
    ("name", "English", "中文", "Español"),
    ("title", "Leaderboard", "排行榜", "Clasificación"),
    (
        "tagline",
        "How well speech systems work, and how much worse they are in noise and reverberation.",
        "语音系统的效果，以及在噪声与混响中的下降。",
        "Qué tan bien funcionan los sistemas de voz y cuánto empeoran con ruido y reverberación.",
    ),
    ("skip", "Skip to the content", "跳到正文", "Ir al contenido"),
    ("views", "Views", "视图", "Vistas"),
    ("view.table", "Ranking", "排名", "Clasificación"),
    ("view.curves", "Curves", "曲线", "Curvas"),
    ("view.speed", "Speed", "速度", "Velocidad"),
    ("view.heat", "Heat map", "热图", "Mapa de calor"),
    ("view.robustness", "Robustness", "鲁棒性", "Robustez"),
    ("view.compare", "Compare", "比较", "Comparar"),
    ("view.system", "System", "系统", "Sistema"),
    ("view.about", "How to read", "阅读说明", "Cómo leer"),
    ("language", "Language of this page", "界面语言", "Idioma de esta página"),
    ("theme.dark", "Dark", "深色", "Oscuro"),
    ("theme.light", "Light", "浅色", "Claro"),
    ("theme.use_dark", "Use the dark theme", "使用深色主题", "Usar el tema oscuro"),
    ("theme.use_light", "Use the light theme", "使用浅色主题", "Usar el tema claro"),
    ("updated", "Newest result: {date}", "最新结果：{date}", "Resultado más reciente: {date}"),
    ("source_repo", "Results: {name}", "结果库：{name}", "Resultados: {name}"),
    ("no_results", "There are no results yet.", "还没有结果。", "Todavía no hay resultados."),
    ("not_found", "There is no such page here.", "没有这个页面。", "Esa página no existe."),
    (
        "not_found_system",
        "There is no system with this id: {id}",
        "没有此编号的系统：{id}",
        "No hay ningún sistema con este identificador: {id}",
    ),
    ("to_ranking", "Go to the ranking", "前往排名", "Ir a la clasificación"),
    # What is chosen.
    ("choose", "What is shown", "显示内容", "Qué se muestra"),
    ("benchmark", "Benchmark", "基准", "Banco de pruebas"),
    ("lang", "Language", "语言", "Idioma"),
    ("subset", "Subset", "子集", "Subconjunto"),
    ("subset.all", "all", "全部", "todos"),
    ("condition", "Condition", "条件", "Condición"),
    ("metric", "Metric", "指标", "Métrica"),
    ("by", "Rank by", "排名依据", "Ordenar según"),
    ("by.score", "score", "得分", "puntuación"),
    ("by.loss", "loss against {baseline}", "相对{baseline}的损失", "pérdida frente a {baseline}"),
    ("normalizer", "Normalizer", "文本规范化", "Normalizador"),
    ("filters", "Filters", "筛选", "Filtros"),
    ("search", "Search", "搜索", "Buscar"),
    ("search.hint", "system or model", "系统或模型", "sistema o modelo"),
    ("any", "any", "不限", "cualquiera"),
    ("kind", "Kind", "类型", "Tipo"),
    ("who", "Who ran it", "结果来源", "Quién lo ejecutó"),
    ("who.self-reported", "self-reported", "自行报告", "declarado por el autor"),
    ("who.re-scored", "re-scored", "已重新评分", "puntuado de nuevo"),
    ("who.published", "published, not re-scored", "已发表，未重新评分", "publicado, sin puntuar de nuevo"),
    ("open", "Open weights", "开放权重", "Pesos abiertos"),
    ("open.only", "open weights only", "仅开放权重", "solo pesos abiertos"),
    ("yes", "yes", "是", "sí"),
    ("no", "no", "否", "no"),
    ("max_parameters", "At most (million parameters)", "参数上限（百万）", "Como máximo (millones de parámetros)"),
    ("clear", "Clear", "清除", "Borrar"),
    # The table.
    ("rank", "Rank", "名次", "Puesto"),
    ("system", "System", "系统", "Sistema"),
    ("models", "Models", "模型", "Modelos"),
    ("parameters", "Parameters", "参数量", "Parámetros"),
    ("score", "Score", "得分", "Puntuación"),
    ("loss", "Loss against {baseline}", "相对{baseline}的损失", "Pérdida frente a {baseline}"),
    ("rtfx", "RTFx", "RTFx", "RTFx"),
    ("memory", "Memory", "内存", "Memoria"),
    ("date", "Date", "日期", "Fecha"),
    ("pick", "Select", "选择", "Elegir"),
    ("pick.system", "Select {name}", "选择 {name}", "Elegir {name}"),
    ("picked", "{n} selected", "已选 {n} 个", "{n} elegidos"),
    ("compare.picked", "Compare the two", "比较这两个", "Comparar los dos"),
    ("curves.picked", "Show their curves", "显示其曲线", "Ver sus curvas"),
    (
        "caption",
        "{benchmark}, {place}, {condition}: {metric}",
        "{benchmark}，{place}，{condition}：{metric}",
        "{benchmark}, {place}, {condition}: {metric}",
    ),
    ("caption.up", "higher is better", "越高越好", "más alto es mejor"),
    ("caption.down", "lower is better", "越低越好", "más bajo es mejor"),
    (
        "caption.note",
        "95 % intervals over items. Systems that cannot be told apart from a better one share its rank; the "
        "interval of a rank is below it.",
        "区间为条目上的 95 % 置信区间。与更好系统无法区分的系统与其并列；名次下方是名次的区间。",
        "Intervalos del 95 % sobre los ítems. Los sistemas que no se distinguen de uno mejor comparten su puesto; "
        "debajo de cada puesto está su intervalo.",
    ),
    (
        "caption.position",
        "A rank in parentheses is the position of the value alone: there are no per-item records.",
        "括号中的名次只是数值的位次：没有逐条记录。",
        "Un puesto entre paréntesis es solo la posición del valor: no hay registros por ítem.",
    ),
    ("status", "{shown} of {n} systems", "{n} 个系统中的 {shown} 个", "{shown} de {n} sistemas"),
    ("status.sorted", "sorted by {column}", "按{column}排序", "ordenados por {column}"),
    ("page", "Page {page} of {pages}", "第 {page} 页，共 {pages} 页", "Página {page} de {pages}"),
    ("previous", "Previous", "上一页", "Anterior"),
    ("next", "Next", "下一页", "Siguiente"),
    ("pages", "Pages", "分页", "Páginas"),
    ("download", "Download", "下载", "Descargar"),
    ("download.csv", "this table as CSV", "此表（CSV）", "esta tabla en CSV"),
    ("download.json", "this table as JSON", "此表（JSON）", "esta tabla en JSON"),
    ("download.all", "everything as {format}", "全部数据（{format}）", "todo en {format}"),
    ("partial", "Partial coverage", "部分覆盖", "Cobertura parcial"),
    (
        "partial.note",
        "These systems were evaluated on a part of the items. They are not ranked with the others.",
        "这些系统只评测了部分条目，不与其他系统一起排名。",
        "Estos sistemas se evaluaron con una parte de los ítems. No se ordenan con los demás.",
    ),
    ("coverage", "Coverage", "覆盖", "Cobertura"),
    ("outside", "Outside the ranking", "不参与排名", "Fuera de la clasificación"),
    (
        "outside.note",
        "Shown as reported, and not ranked.",
        "按报告原样列出，不参与排名。",
        "Se muestran tal como se comunicaron, sin ordenar.",
    ),
    ("note", "Note", "说明", "Nota"),
    ("erratum", "erratum", "勘误", "errata"),
    ("erratum.about", "About this number: {text}", "关于此数值：{text}", "Sobre este número: {text}"),
    ("nothing", "No system matches.", "没有符合条件的系统。", "Ningún sistema coincide."),
    ("unknown", "unknown", "未知", "desconocido"),
    (
        "rank.interval",
        "95 % interval of the rank: {low} to {high}",
        "名次的 95 % 区间：{low} 至 {high}",
        "Intervalo del 95 % del puesto: {low} a {high}",
    ),
    ("interval", "{low} to {high}", "{low} 至 {high}", "{low} a {high}"),
    # Charts.
    ("curves.title", "{metric} by condition", "各条件下的 {metric}", "{metric} por condición"),
    (
        "curves.note",
        "Bars are 95 % intervals over items. Select systems in the ranking to see others; at most {n}.",
        "竖线为条目上的 95 % 区间。可在排名中选择其他系统，最多 {n} 个。",
        "Las barras son intervalos del 95 % sobre los ítems. Elija otros sistemas en la clasificación; como máximo "
        "{n}.",
    ),
    ("add", "Add a system", "添加系统", "Añadir un sistema"),
    ("remove", "Remove {name}", "移除 {name}", "Quitar {name}"),
    ("speed.title", "{metric} against speed", "{metric} 与速度", "{metric} frente a la velocidad"),
    (
        "speed.note",
        "RTFx is seconds of audio per second of processing; it depends on the machine. On the line, no other "
        "system is both faster and better.",
        "RTFx 为每秒处理时间所处理的音频秒数，取决于机器。线上的系统：没有其他系统既更快又更好。",
        "RTFx son segundos de audio por segundo de proceso; depende de la máquina. En la línea, ningún otro "
        "sistema es a la vez más rápido y mejor.",
    ),
    ("speed.axis", "RTFx, faster to the right", "RTFx，越靠右越快", "RTFx, más rápido a la derecha"),
    ("frontier", "On the line", "前沿上", "En la línea"),
    (
        "left_out",
        "Left out because a number is missing: {n}",
        "因缺少数值而未列出：{n}",
        "Sin mostrar porque falta un número: {n}",
    ),
    ("heat.title", "{first} × {second}", "{first} × {second}", "{first} × {second}"),
    (
        "heat.note",
        "The best value of each pair. The stronger the color, the better.",
        "每一组合的最佳值。颜色越浓越好。",
        "El mejor valor de cada pareja. Cuanto más intenso el color, mejor.",
    ),
    ("robustness.title", "Loss and baseline score", "损失与基线得分", "Pérdida y puntuación de referencia"),
    (
        "robustness.note",
        "To the right: a better baseline score. Further down: a smaller loss. The lines are medians.",
        "越靠右：基线得分越好。越靠下：损失越小。线为中位数。",
        "A la derecha: mejor puntuación de referencia. Más abajo: menos pérdida. Las líneas son medianas.",
    ),
    ("robustness.x", "{metric}, {condition}", "{metric}，{condition}", "{metric}, {condition}"),
    (
        "steady.title",
        "Stability over conditions: {metric}, {place}",
        "各条件间的稳定性：{metric}，{place}",
        "Estabilidad entre condiciones: {metric}, {place}",
    ),
    ("steady.snr", "SNR at 10 % loss, dB", "损失 10 % 时的信噪比（dB）", "SNR con un 10 % de pérdida, dB"),
    ("steady.snr_points", "SNR at +10 points, dB", "升高 10 个百分点时的信噪比（dB）", "SNR con +10 puntos, dB"),
    (
        "steady.note",
        "σ: sample standard deviation of the condition means; a small σ is a steady score, not a good one. "
        "The SNR is the highest at which that much of the clean score is lost.",
        "σ：各条件均值的样本标准差；σ 小表示得分稳定，不代表得分高。信噪比为损失达到该值时的最高信噪比。",
        "σ: desviación típica muestral de las medias por condición; una σ pequeña es una puntuación estable, no buena. "
        "La SNR es la más alta con la que se pierde esa parte de la puntuación limpia.",
    ),
    (
        "robustness.choose",
        "Choose a condition other than {condition}.",
        "请选择 {condition} 以外的条件。",
        "Elija una condición que no sea {condition}.",
    ),
    (
        "chart.empty",
        "There is nothing to show for this choice.",
        "此选择没有可显示的内容。",
        "No hay nada que mostrar para esta elección.",
    ),
    ("chart.table", "The numbers of this chart", "图中数值", "Los números del gráfico"),
    (
        "chart.desc",
        "Chart; its numbers are in the table below.",
        "图；数值见下表。",
        "Gráfico; sus números están en la tabla siguiente.",
    ),
    # One system.
    ("facts", "Facts", "概况", "Datos"),
    ("scores", "Scores", "得分", "Puntuaciones"),
    ("failures", "Failures", "失败次数", "Fallos"),
    (
        "failures.note",
        "Counts of what went wrong. No failure is turned into text.",
        "出错次数。任何失败都不会被当作文本。",
        "Recuento de lo que salió mal. Ningún fallo se convierte en texto.",
    ),
    ("timing", "Time, memory and energy", "时间、内存与能耗", "Tiempo, memoria y energía"),
    ("settings", "Settings", "设置", "Ajustes"),
    ("files", "Stored results", "存储的结果", "Resultados guardados"),
    ("superseded", "Older results", "较早的结果", "Resultados anteriores"),
    ("config", "Config", "配置", "Configuración"),
    ("hardware", "Hardware", "硬件", "Hardware"),
    ("data", "Data", "数据", "Datos de prueba"),
    ("revision", "Revision", "版本", "Revisión"),
    ("role", "Role", "角色", "Papel"),
    ("file", "File", "文件", "Archivo"),
    ("errata", "Errata", "勘误", "Erratas"),
    ("n", "n", "n", "n"),
    ("role.front_end", "front end", "前端", "procesado previo"),
    ("role.transcriber", "transcriber", "转写模型", "transcriptor"),
    ("role.encoder", "encoder", "编码器", "codificador"),
    ("role.retriever", "retriever", "检索器", "recuperador"),
    ("role.answerer", "answerer", "回答模型", "respondedor"),
    ("kind.cascade", "cascade", "级联", "cascada"),
    ("kind.end-to-end", "end to end", "端到端", "de extremo a extremo"),
    ("kind.run", "precomputed run", "预计算结果", "resultado precalculado"),
    ("kind.transcriber", "transcriber", "转写模型", "transcriptor"),
    ("kind.answerer", "answerer", "回答模型", "respondedor"),
    ("fail.failed", "failed", "失败", "fallidos"),
    ("fail.loop", "loops", "循环", "bucles"),
    ("fail.truncated", "truncated", "截断", "truncados"),
    ("fail.empty", "empty", "空", "vacíos"),
    ("fail.hallucination", "hallucinations", "幻觉", "alucinaciones"),
    ("fail.audio_truncated", "audio truncated", "音频被截断", "audio truncado"),
    ("fail.missing_audio", "missing audio", "缺少音频", "sin audio"),
    ("fail.missing", "found nothing", "无结果", "sin resultados"),
    ("fail.no_relevant", "no relevant document", "无相关文档", "sin documento relevante"),
    ("fail.unjudged", "unjudged", "未标注", "sin juzgar"),
    # Two systems.
    ("compare.title", "Two systems", "两个系统", "Dos sistemas"),
    ("compare.first", "First", "第一个", "Primero"),
    ("compare.second", "Second", "第二个", "Segundo"),
    ("compare.choose", "Choose two systems.", "请选择两个系统。", "Elija dos sistemas."),
    ("compare.difference", "Difference", "差值", "Diferencia"),
    ("compare.p", "p", "p", "p"),
    ("compare.p_holm", "p (Holm)", "p（Holm）", "p (Holm)"),
    ("compare.detectable", "Detectable", "可检出差值", "Detectable"),
    (
        "compare.tested",
        "Paired permutation test on the same items; p corrected by Holm over the metrics of this pair. "
        "“Detectable” is the true difference that this n finds with a power of 80 %.",
        "在相同条目上的配对置换检验；p 值按本组合的各指标作 Holm 校正。“可检出差值”是在此 n 下以 80 % 功效可检出的"
        "真实差值。",
        "Prueba de permutación pareada sobre los mismos ítems; p corregida por Holm sobre las métricas de esta "
        "pareja. «Detectable» es la diferencia real que este n encuentra con una potencia del 80 %.",
    ),
    (
        "compare.untested",
        "There is no paired test of these two here: only the first {n} systems of a table that have per-item "
        "records are tested in pairs. With the records at hand: squtr compare A B.",
        "此处没有这两个系统的配对检验：只对各表前 {n} 名且有逐条记录的系统两两检验。有记录时可用：squtr compare A B。",
        "Aquí no hay prueba pareada de estos dos: solo se prueban por parejas los {n} primeros sistemas de una "
        "tabla que tienen registros por ítem. Con los registros: squtr compare A B.",
    ),
    (
        "compare.different",
        "These two may not be compared: {why}.",
        "这两个系统不可比较：{why}。",
        "Estos dos no se pueden comparar: {why}.",
    ),
    (
        "compare.different.group",
        "their benchmark, version or data differ",
        "基准、版本或数据不同",
        "difieren el banco de pruebas, la versión o los datos",
    ),
    (
        "compare.different.partial",
        "one covers all items and the other a part",
        "一个覆盖全部条目，另一个只覆盖一部分",
        "uno cubre todos los ítems y el otro una parte",
    ),
    ("compare.all", "All conditions", "所有条件", "Todas las condiciones"),
    ("compare.better", "better", "较好", "mejor"),
    ("swap", "Swap", "交换", "Intercambiar"),
    # Reading.
    ("about.title", "How to read this", "如何阅读", "Cómo leer esto"),
    (
        "about.rank",
        "A rank is one more than the number of systems that are better beyond chance (paired differences, Holm's "
        "correction over all pairs of the table); its interval is that of a bootstrap over items.",
        "名次等于显著更好的系统数加一（配对差值，对表中所有组合作 Holm 校正）；其区间来自对条目的自助抽样。",
        "El puesto es uno más que el número de sistemas mejores más allá del azar (diferencias pareadas, "
        "corrección de Holm sobre todas las parejas de la tabla); su intervalo es el de un remuestreo de los ítems.",
    ),
    (
        "about.apart",
        "Results of other benchmarks, versions, data or normalizers never share a table. Partial results are "
        "listed separately.",
        "不同的基准、版本、数据或规范化方式的结果从不同列一表。部分结果单独列出。",
        "Los resultados de otros bancos de pruebas, versiones, datos o normalizadores nunca comparten tabla. Los "
        "parciales se listan por separado.",
    ),
    (
        "about.who",
        "Self-reported: the submitter's numbers, checked for form. Re-scored: computed again from the submitter's "
        "per-item records. Published: taken from a paper, not re-scored.",
        "自行报告：提交者的数值，已检查格式。已重新评分：由提交者的逐条记录重新计算。已发表：取自论文，未重新评分。",
        "Declarado por el autor: sus números, revisados en la forma. Puntuado de nuevo: calculado otra vez a "
        "partir de sus registros por ítem. Publicado: tomado de un artículo, sin puntuar de nuevo.",
    ),
    (
        "about.loss",
        "A loss is how much worse a score is than the same system's score on a baseline such as clean speech or "
        "typed text, paired by item; below it is the loss relative to that score.",
        "损失是得分比同一系统在基线（如干净语音或键入文本）上的得分差多少，按条目配对；其下为相对损失。",
        "La pérdida es cuánto peor es una puntuación que la del mismo sistema en una referencia, como habla limpia "
        "o texto escrito, pareada por ítem; debajo, la pérdida relativa.",
    ),
    (
        "about.speed",
        "RTFx, memory and energy depend on the machine, which each system's page names.",
        "RTFx、内存与能耗取决于机器，各系统页面注明了机器。",
        "RTFx, memoria y energía dependen de la máquina, que consta en la página de cada sistema.",
    ),
    (
        "about.text",
        "Typed text is not audio: it shows what a system would score with a perfect transcript.",
        "键入文本不是音频：它显示系统在转写完全正确时的得分。",
        "El texto escrito no es audio: muestra qué puntuaría un sistema con una transcripción perfecta.",
    ),
    (
        "about.private",
        "This page loads nothing from elsewhere, sets no cookie and counts nobody.",
        "本页不从别处加载任何内容，不设 cookie，也不统计访问者。",
        "Esta página no carga nada de otros sitios, no usa cookies y no cuenta a nadie.",
    ),
    # Conditions.
    ("cond.text", "typed text", "键入文本", "texto escrito"),
    ("cond.clean", "clean", "干净", "limpio"),
    ("step.noise", "noise at {snr_db} dB", "噪声 {snr_db} dB", "ruido a {snr_db} dB"),
    ("step.rir", "reverberation", "混响", "reverberación"),
    ("step.early_rir", "early reflections", "早期反射", "reflexiones tempranas"),
)

STRINGS: Final[dict[str, dict[str, str]]] = {
    language: {row[0]: row[place] for row in _ROWS} for place, language in enumerate(UI_LANGUAGES, start=1)
}
"""The texts of each language by key."""
KEYS: Final = tuple(row[0] for row in _ROWS)
"""Every key, as often as it is written: a test looks for doubles."""
