package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/varvedb/varve/bench/result"
	"github.com/varvedb/varve/internal/report/runs"
	"github.com/varvedb/varve/internal/verdict"
	"github.com/varvedb/varve/schemas"
	"github.com/varvedb/varve/store/driver"
)

// view is a table of a document: figures in some of the settings of an experiment. The
// page has all of them in all.
type view struct {
	units   string  // a row each where there are several; "" has the page's own tables
	kinds   string  // of operations, a row each; "" is the metric
	where   string  // settings as key=value|value: others are left out where there are these
	one     bool    // of several sizes the one that most settings have
	size    string  // of several sizes rows of this one, or of the largest, and how figures grow
	with    string  // another experiment, whose settings are compared with and have no rows
	hide    string  // settings as key=value|value that have no rows, only a part in factors
	compare string  // rows of factors between settings, as key:from:to; key:step compares each value with the one before
	gain    bool    // factors say how many times better the second is, not how many times worse
	claim   float64 // the factor that the documents report where they have no figures of both settings
}

// largest is the size of a view that shows the largest.
const largest = "largest"

// sizes are the keys that say how much data there is, as documents have them in a
// specification of what is full.
var sizes = []string{"scale", "relationships", "rows", "entities", "blocks"}

// incidental are keys that need no column where what else is in a row tells them: how
// much was measured, whichever engine it is of, and the promise of an engine.
var incidental = []string{"entities", "blocks", "rows", "for", "phase", "durability"}

// Brief returns what a document says of an experiment: the question, what the documents
// found, whether they agree with what was measured, and compact tables. When nothing was
// measured it says so, and what to run.
func Brief(in *Input, id string) []Table {
	x := in.experiment(id)
	b := brief{in: in, x: &x}
	tables := b.tables()
	if len(tables) == 0 {
		tables = []Table{x.missing("`")}
		tables[0].Caption = b.question()
	} else {
		tables[0].Caption = b.question() + "\n" + b.head(tables[0].Caption+" `"+b.command()+"`")
		if !strings.Contains(tables[0].Caption, "\n- ") {
			tables[0].Caption = strings.ReplaceAll(tables[0].Caption, "\n", lineBreak)
		}
	}
	last := &tables[len(tables)-1]
	last.Notes = append(last.Notes, nonempty(b.failures(), sentence(x.leftOut))...)
	return tables
}

// lineBreak is one within a paragraph.
const lineBreak = "\\\n"

// tables are those of an experiment's views, or those that it has instead.
func (b *brief) tables() (tables []Table) {
	for _, v := range b.x.brief {
		if v.units != "" {
			tables = append(tables, b.table(&v)...)
			continue
		}
		tables = append(tables, b.x.spec.tables(newPivot(choose(b.x.groups, v.where), b.in.floor(b.x.id)))...)
	}
	return tables
}

// head is what stands between the question and the first table: what follows for the
// documents, and what the table has.
func (b *brief) head(caption string) string {
	var wanted []string
	for _, part := range b.x.parts {
		wanted = append(wanted, b.in.criteria(part)...)
	}
	text := joinWords(" ", append([]string{b.answer()}, b.standings()...)...)
	if len(wanted) == 0 {
		return joinWords("\n", text, caption)
	}
	return joinWords("\n", text, strings.Join(wanted, "\n")) + "\n\n" + caption
}

// brief is what a document says of one experiment while it is put together.
type brief struct {
	in     *Input
	x      *experiment
	claims []claim
	first  *pivot // of the first table, whose first unit the engines are compared by
	unit   string
}

// answer says what follows for what the documents found, and at which size.
func (b *brief) answer() string {
	text := judgeClaims(b.claims)
	if b.x.judge != nil {
		text = joinWords(" ", b.x.judge(b.x), text)
	}
	return joinWords(" ", text, b.reached())
}

// question names the experiment, asks, and quotes the documents.
func (b *brief) question() string {
	e := b.in.entry(b.x.id)
	text := joinWords(" ", "**"+joinWords(". ", e.ID, e.Title)+".**", e.Question)
	if e.Earlier != "" {
		text += " *The documents:* " + e.Earlier + "."
	}
	return text
}

// reached says how large the data was where it was not as large as the documents' own.
func (b *brief) reached() string {
	key, most, full := b.size()
	if full == 0 {
		name, value, _ := strings.Cut(b.x.full, "=")
		has := nonempty(runs.Distinct(b.x.groups, name)...)
		if len(has) > 0 && number(value) == 0 && !slices.Contains(has, value) {
			return fmt.Sprintf("**Not at the documents' size** (%s %s), but at %s.", name, value, strings.Join(has, ", "))
		}
	}
	if most >= full {
		return ""
	}
	return fmt.Sprintf("**Not at the documents' size**, but at %s of it (%s %s of %s).",
		percent(most/full), key, runs.Number(most), runs.Number(full))
}

// size returns the largest size that was measured, and the documents' own; 0 when either
// is not known.
func (b *brief) size() (key string, most, full float64) {
	key, text, _ := strings.Cut(cmp.Or(b.x.full, "scale=1"), "=")
	for _, g := range b.x.groups {
		if v, err := strconv.ParseFloat(g.Get(key), 64); err == nil && !g.Failed() {
			most = max(most, v)
		}
	}
	if full, _ = strconv.ParseFloat(text, 64); most == 0 {
		full = 0
	}
	return key, most, full
}

func percent(part float64) string { return strconv.FormatFloat(100*part, 'g', 2, 64) + " %" }

// command is what measures the experiment again.
func (b *brief) command() string {
	text := "varve run " + b.x.id
	blocks, shown := 0, b.x.groups
	if b.first != nil {
		shown = b.first.groups
	}
	for _, g := range shown {
		blocks = max(blocks, len(g.Records))
	}
	scales := nonempty(runs.Distinct(b.x.groups, "scale")...)
	slices.SortFunc(scales, natural)
	if _, most, full := b.size(); len(scales) > 1 && b.x.growth != "" {
		text += " --sizes " + strings.Join(scales, ",")
	} else if full > 0 {
		text += fmt.Sprintf(" --scale %g", most/full)
	}
	return text + fmt.Sprintf(" --blocks %d", blocks)
}

// failures counts what did not end well, and says of one why.
func (b *brief) failures() string {
	n, why := 0, ""
	for _, g := range b.x.groups {
		for _, r := range g.Records {
			if r.Error != "" {
				n, why = n+1, cmp.Or(why, g.Get("engine")+": "+oneLine(r.Error, 160))
			}
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("Runs that failed: %d; the first, %s. The page has all.", n, why)
}

// choose leaves those groups that have certain values, as key=value|value, where some
// have.
func choose(groups []*runs.Group, where string) []*runs.Group {
	for pair := range strings.FieldsSeq(where) {
		if some := runs.Where(groups, func(g *runs.Group) bool { return among(g, pair) }); len(some) > 0 {
			groups = some
		}
	}
	return groups
}

// among tells whether a group has one of the values of a setting, as key=value|value.
func among(g *runs.Group, pair string) bool {
	key, values, _ := strings.Cut(pair, "=")
	return slices.Contains(strings.Split(values, "|"), g.Get(key))
}

// common leaves the groups of the size that most have, of equals of the largest.
func common(groups []*runs.Group) []*runs.Group {
	of := runs.By(groups, func(g *runs.Group) string { return g.Get("scale") })
	if len(of) == 0 {
		return nil
	}
	return slices.MaxFunc(of, func(a, b []*runs.Group) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), natural(a[0].Get("scale"), b[0].Get("scale")))
	})
}

// figures are the measures of a view, with what a row of each is called besides.
func (v *view) figures() (list []runs.Measure) {
	for unit := range strings.FieldsSeq(v.units) {
		for _, kind := range append(strings.Fields(v.kinds), "")[:max(1, len(strings.Fields(v.kinds)))] {
			list = append(list, runs.Measure{Unit: unit, Kind: kind})
		}
	}
	return list
}

// table makes the tables of a view: none when there are no figures.
func (b *brief) table(v *view) []Table {
	groups, _ := b.in.of(nonempty(b.x.id, v.with)...)
	figures := v.figures()
	groups = choose(runs.Where(groups, func(g *runs.Group) bool {
		return !runs.End(g.Records[0]) && (g.Failed() || slices.ContainsFunc(figures, func(m runs.Measure) bool { return has(g, m) }))
	}), v.where)
	if v.one {
		groups = common(groups)
	}
	if !slices.ContainsFunc(groups, func(g *runs.Group) bool { return !g.Failed() }) {
		return nil
	}
	all := b.pivot(groups)
	if len(all.engines) == 0 {
		return nil
	}
	p := b.pivot(v.ofSize(all))
	if b.first == nil {
		b.first, b.unit = p, figures[0].Unit
	}
	t := b.grid(v, p, figures)
	for _, series := range p.series() {
		shown := slices.DeleteFunc(slices.Clone(series), func(r pivotRow) bool { return !v.shows(p, &r, b.x.id) })
		if len(shown) == 0 {
			continue
		}
		for _, m := range figures {
			for _, r := range shown {
				t.add(p, &r, r.values, m)
			}
			t.grow(all, &shown[0], m)
		}
	}
	b.factors(v, p, t)
	if n := operations(p, figures); n != "" {
		t.Caption = strings.TrimSuffix(t.Caption, ".") + "; n " + n + " operations a figure."
	}
	t.Rows = slices.DeleteFunc(t.Rows, func(row []Cell) bool {
		return !slices.ContainsFunc(row[t.named+len(t.peers):], func(c Cell) bool { return c.Text != "" })
	})
	return t.unlessEmpty()
}

// pivot has the settings of a document as rows.
func (b *brief) pivot(groups []*runs.Group) *pivot {
	p := pivotOf(groups, b.in.floor(b.x.id), briefKeys(groups))
	p.sized = b.x.sized
	return p
}

// ofSize leaves the groups of the size that a view shows, in each series.
func (v *view) ofSize(p *pivot) (groups []*runs.Group) {
	at := p.size()
	for _, series := range p.series() {
		for i := range series {
			if v.size == "" || at < 0 || series[i].values[at] == v.size || v.size == largest && i == len(series)-1 {
				groups = append(groups, p.of(&series[i])...)
			}
		}
	}
	return groups
}

// has tells whether a group has a figure, or the maximum that stands for it.
func has(g *runs.Group, m runs.Measure) bool { return briefCell(g, m).Text != "" }

// operations is of how many operations the figures are that are of latencies, from the
// fewest to the most.
func operations(p *pivot, figures []runs.Measure) string {
	var counts []int64
	for _, g := range p.groups {
		for _, m := range figures {
			if n := g.Count(m); n > 0 && len(g.Values(m)) > 0 {
				counts = append(counts, n)
			}
		}
	}
	if len(counts) == 0 {
		return ""
	}
	low, high := runs.Number(float64(slices.Min(counts))), runs.Number(float64(slices.Max(counts)))
	if low == high {
		return low
	}
	return low + " to " + high
}

// briefKeys are the settings that make rows, or stand above them: the size last, so that
// rows of one series stand below each other, and nothing that the others tell.
func briefKeys(groups []*runs.Group) []string {
	keys := keysOf(groups)
	for _, key := range incidental {
		rest := slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return k == key })
		of := func(g *runs.Group) string {
			text := ""
			if key == "durability" {
				text = g.Get("engine")
			}
			for _, k := range rest {
				text += " " + g.Get(k)
			}
			return text
		}
		told := !slices.ContainsFunc(runs.By(groups, of), func(same []*runs.Group) bool { return len(runs.Distinct(same, key)) > 1 })
		if told && len(runs.Distinct(groups, key)) > 1 { // what all have in common stands above
			keys = rest
		}
	}
	for _, key := range sizes {
		if i := slices.Index(keys, key); i >= 0 && len(runs.Distinct(groups, key)) > 1 {
			return append(slices.Delete(keys, i, i+1), key)
		}
	}
	return keys
}

// shows tells whether a row stands in the table: not those that are only compared with,
// and of steps only the ends.
func (v *view) shows(p *pivot, r *pivotRow, id string) bool {
	if key, steps := strings.CutSuffix(v.compare, ":step"); steps {
		at := slices.Index(p.keys, key)
		if at < 0 {
			return true
		}
		ends := []string{p.rows[0].values[at], p.rows[len(p.rows)-1].values[at]}
		return slices.Contains(ends, r.values[at])
	}
	return slices.ContainsFunc(p.of(r), func(g *runs.Group) bool {
		return g.Experiment == id && (v.hide == "" || !among(g, v.hide))
	})
}

// sheet is a table that is filled row by row: what names a row, the peers, the engines.
type sheet struct {
	*Table
	view    *view
	peers   []peer
	engines []string
	several bool // units, which name rows then
}

func (b *brief) grid(v *view, p *pivot, figures []runs.Measure) *sheet {
	t := &sheet{view: v, engines: p.engines, several: len(strings.Fields(v.units)) > 1}
	named := heads(p.heads()...)
	if t.several {
		named = append(named, Column{Head: "figure"})
	}
	if v.kinds != "" {
		named = append(named, Column{Head: "operation"})
	}
	if len(named) == 0 {
		named = heads("")
	}
	for _, peer := range b.in.documents(b.x.id, v.with) {
		if slices.ContainsFunc(p.rows, func(r pivotRow) bool {
			return slices.ContainsFunc(figures, func(m runs.Measure) bool { return m.Kind == "" && peer.figure(p, &r, m.Unit) != nil })
		}) {
			t.peers = append(t.peers, peer)
		}
	}
	t.Table = newGrid(named, besideColumns(t.peers, p.engines))
	t.Caption = p.settings()
	if !t.several {
		t.Caption = "**" + v.units + "**. " + t.Caption
	}
	return t
}

// row begins a row, and returns its cells: of the peers and then of the engines.
func (t *sheet) row(values []string, m runs.Measure) []Cell {
	var names []string
	for _, v := range values {
		names = append(names, readable(v))
	}
	if t.several {
		names = append(names, m.Unit)
	}
	if t.view.kinds != "" {
		names = append(names, m.Kind)
	}
	if len(names) == 0 {
		names = []string{"all"}
	}
	return t.Table.row(names)[t.named:]
}

// add adds the figures of a setting. What is inside the noise of the best of its row is
// marked.
func (t *sheet) add(p *pivot, r *pivotRow, values []string, m runs.Measure) {
	row := t.row(values, m)
	for i, peer := range t.peers {
		if v := peer.figure(p, r, m.Unit); v != nil && m.Kind == "" {
			row[i] = Cell{Text: short(*v)}
		}
	}
	own := row[len(t.peers):]
	for i, e := range t.engines {
		own[i] = briefCell(r.byEngine[e], m)
	}
	best := bestIn(own, result.Better(m.Unit))
	if best < 0 || result.Better(m.Unit) == result.Neutral {
		return
	}
	for i := range own {
		if v := own[i].Value; i != best && v != nil && p.floor.Inside(m.Unit, *v, *own[best].Value) {
			own[i].Text = "≈ " + own[i].Text
		}
	}
	own[best].Class = "best"
}

// briefCell is a median with its interval.
func briefCell(g *runs.Group, m runs.Measure) Cell {
	if g == nil {
		return Cell{}
	}
	if g.Failed() {
		return Cell{Text: "failed"}
	}
	values := g.Values(m)
	if v, ok := runs.Median(values); ok {
		return Cell{Text: short(v), Value: &v, Spread: spreadOf(values, short)}
	}
	if longest, ok := g.Longest(m); ok && g.Count(m) > 0 {
		return Cell{Text: fmt.Sprintf("%s%s (n %d)", maximum, short(longest), g.Count(m))}
	}
	return Cell{}
}

// short writes a figure with three significant digits in few characters.
func short(v float64) string {
	switch {
	case v >= 999_500:
		return fmt.Sprintf("%.3gM", v/1e6)
	case v >= 10_000:
		return fmt.Sprintf("%.3gK", v/1e3)
	}
	return runs.Number(v)
}

// stepName is the index that a layout of the ablation adds to the one before.
func stepName(layout string) string {
	n, err := strconv.Atoi(strings.TrimPrefix(layout, "arkiv-"))
	l, err2 := schemas.Entities(layout, string(driver.SQLite))
	if err != nil || err2 != nil || n != len(l.Indexes) || n == 0 {
		return layout
	}
	return fmt.Sprintf("%d: %s", n, l.Indexes[n-1].Name)
}

// criteria say which engines and layouts are where with what the documents want of a part
// of the evaluation.
func (in *Input) criteria(part string) (lines []string) {
	r := in.evaluation()
	var all []verdict.Criterion
	who := map[string]map[verdict.Outcome]map[string][]string{} // engines by layout
	for _, a := range r.Assessments {
		for _, c := range a.Criteria {
			if c.Part != part {
				continue
			}
			if who[c.Name] == nil {
				all, who[c.Name] = append(all, c), map[verdict.Outcome]map[string][]string{verdict.Pass: {}, verdict.Fail: {}, verdict.Unknown: {}}
			}
			of := who[c.Name][c.Verdict]
			of[a.Layout] = append(of[a.Layout], a.Engine)
		}
	}
	slices.SortStableFunc(all, func(a, b verdict.Criterion) int { return natural(a.Part+a.Unit+a.Name, b.Part+b.Unit+b.Name) })
	said := func(c verdict.Criterion) string {
		var parts []string
		for _, o := range []verdict.Outcome{verdict.Pass, verdict.Fail, verdict.Unknown} {
			parts = append(parts, outcome(o, who[c.Name][o], len(r.Assessments)))
		}
		return strings.Join(nonempty(parts...), "; ")
	}
	for _, same := range runs.By(all, said) {
		var wanted []string
		for _, c := range same {
			wanted = append(wanted, c.Name+" "+c.Wanted())
		}
		lines = append(lines, fmt.Sprintf("- %s: %s.", strings.Join(wanted, ", "), said(same[0])))
	}
	return lines
}

// outcome names who has it, where these are not all.
func outcome(o verdict.Outcome, layouts map[string][]string, of int) string {
	n := 0
	var names []string
	for layout, engines := range layouts {
		n += len(engines)
		sortEngines(engines)
		names = append(names, "`"+layout+"` on "+strings.Join(engines, ", "))
	}
	slices.Sort(names)
	switch {
	case n == 0:
		return ""
	case n == of:
		return fmt.Sprintf("**%s** for all %d", o, n)
	case o == verdict.Unknown:
		return fmt.Sprintf("%s for %d", o, n)
	}
	return fmt.Sprintf("**%s** %s", o, strings.Join(names, "; "))
}

// coverage says what was not measured, or not at the documents' size, and of what there
// is a trend: nothing of it is to be forgotten.
func coverage(in *Input) Table {
	var missing, smaller, full, trends, single []string
	for _, id := range in.ids() {
		x := in.experiment(id)
		b := brief{in: in, x: &x}
		if len(b.tables()) == 0 {
			missing = append(missing, id)
			continue
		}
		key, most, whole := b.size()
		switch {
		case most < whole:
			smaller = append(smaller, fmt.Sprintf("%s (%s)", id, percent(most/whole)))
		case b.reached() != "":
			smaller = append(smaller, id)
		default:
			full = append(full, id)
		}
		if x.grows != "" {
			grown, _ := in.of(x.grows)
			x.groups = append(x.groups, grown...)
		}
		if slices.ContainsFunc(append([]string{key}, sizes...), func(key string) bool { return enough(x.groups, key) }) {
			trends = append(trends, id)
		} else {
			single = append(single, id)
		}
	}
	line := func(what string, ids []string) string {
		if len(ids) == 0 {
			ids = []string{"none"}
		}
		return "- " + what + ": " + strings.Join(ids, ", ") + "."
	}
	return Table{Notes: []string{
		line("Not measured", missing), line("Smaller than in the documents", smaller),
		line("At their size, or of none", full), line("With a trend over three sizes or more", trends), line("Without one", single),
	}}
}

// enough tells whether there are sizes enough for a trend.
func enough(groups []*runs.Group, key string) bool {
	n := 0
	for _, value := range runs.Distinct(groups, key) {
		if slices.ContainsFunc(groups, func(g *runs.Group) bool { return g.Get(key) == value && !g.Failed() }) && value != "" {
			n++
		}
	}
	return n >= enoughSizes
}
