package answer

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"

	"github.com/varvedb/varve/internal/report"
)

// templates are the sentences of the five questions by id, with the experiment
// that each uses. Only names and figures are filled in. A sentence is "" if
// there is nothing to fill in.
var templates = map[string]struct {
	experiment string
	say        func(*sayer) string
}{
	"1": {"D1", (*sayer).writes}, "2": {"C1", (*sayer).reads}, "3": {"I3", (*sayer).sweetSpot},
	"4": {"D1", (*sayer).degradation}, "5": {"I5", (*sayer).firstVersion},
}

// sentenceOf returns the sentence of a question, and the left-out candidates
// with the reasons.
func sentenceOf(set *report.Set, id string) (text, left string) {
	t := templates[id]
	s := newSayer(set, t.experiment)
	if len(s.all) > 0 {
		text = t.say(s)
	}
	var parts []string
	for _, l := range s.excluded {
		parts = append(parts, strings.Join(l.names, ", ")+" ("+l.why+")")
	}
	left = strings.Join(parts, "; ")
	switch short := tooShort(s.set); {
	case text != "" && short != "":
		return "Cannot be judged: " + short + ". The tables have the figures; more --time makes phases longer.", ""
	case text == "" && left != "":
		return "Cannot be judged: " + left + ". The tables have the figures; more --time repeats them.", ""
	case text == "":
		return "Not known: nothing was measured of it. varve answer measures it, and varve run " + t.experiment + " that alone.", ""
	}
	// one marks sample sizes. If all are equal, they are stated only once.
	const one = "one sitting)"
	if strings.Contains(text, one) && !strings.Contains(text, "n=") && !strings.Contains(text, "one run)") {
		text = "In one sitting: " + strings.NewReplacer(", "+one, ")", " ("+one, "").Replace(text)
	}
	return text, left
}

// judgedPhase is the minimum duration of a phase that is judged: a shorter one
// may end before the first checkpoint or merge.
const judgedPhase = time.Second

// tooShort returns a phase of a set that is too short to be judged, or "".
func tooShort(set *report.Set) string {
	for _, l := range set.Lines {
		if phase, err := time.ParseDuration(l.GetConfig("phase")); err == nil && phase < judgedPhase {
			return fmt.Sprintf("a phase lasted %v, which is below %v", phase, judgedPhase)
		}
	}
	return ""
}

// sayer finds the figures of a sentence.
type sayer struct {
	whole *report.Set
	set   *report.Set // of one experiment
	tried *report.Set // including failed runs
	all   []candidate // the reference first
	sizes []string    // scales, the smallest first
	scale string      // the largest scale among those with the most candidates
	base  bool        // scales are multiples of the base profile
	mix   string      // the mix that the sentence is about; tables have the others

	excluded []left // candidates that are not judged
}

// left are candidates that are not judged.
type left struct {
	why   string
	names []string
}

func newSayer(set *report.Set, experiment string) *sayer {
	s := &sayer{whole: set, set: only(set, experiment), base: true}
	s.all, s.tried = candidates(s.set)
	seen, count := make(map[string]bool), make(map[string]int) // number of candidates by size
	for _, l := range s.set.Lines {
		c, scale := candidate{report.Key(l, "engine"), report.Key(l, "layout")}, report.Key(l, "scale")
		if at := scale + " " + c.String(); scale != "" && !seen[at] {
			seen[at] = true
			count[scale]++
		}
		profile := report.Key(l, "profile")
		s.base = s.base && (profile == "" || strings.HasPrefix(profile, baseProfile))
	}
	if s.sizes = numbers(s.set, "scale"); s.sizes == nil {
		s.sizes = numbers(s.tried, "scale")
	}
	for _, size := range s.sizes {
		if count[size] >= count[s.scale] {
			s.scale = size
		}
	}
	s.mix = report.MainMix(s.tried.Values("mix"))
	return s
}

// numbers returns the values of a key, in increasing order.
func numbers(set *report.Set, key string) []string {
	list := set.Values(key)
	slices.SortFunc(list, func(a, b string) int { return cmp.Compare(number(a), number(b)) })
	return list
}

// at returns the filter for a size, and for the mix if there are mixes.
func (s *sayer) at(scale string) string {
	if s.mix != "" {
		return "/scale:" + scale + " /mix:" + s.mix + " "
	}
	return "/scale:" + scale + " "
}

// tooFew is the reason to exclude a candidate that was measured too seldom.
var tooFew = fmt.Sprintf("fewer than %d runs", report.Judged)

// exclude excludes a candidate from the judgement, with the reason.
func (s *sayer) exclude(c candidate, why string) {
	i := slices.IndexFunc(s.excluded, func(l left) bool { return l.why == why })
	if i < 0 {
		i, s.excluded = len(s.excluded), append(s.excluded, left{why: why})
	}
	if l := &s.excluded[i]; !slices.Contains(l.names, c.String()) {
		l.names = append(l.names, c.String())
	}
}

// figure returns a candidate's figure in the first unit that it has; nil for
// none.
func (s *sayer) figure(c candidate, filter string, units ...string) *report.Figure {
	for _, unit := range units {
		f, err := s.set.Figure(c.filter(filter), unit)
		if err != nil {
			s.exclude(c, err.Error())
		}
		if f != nil {
			return f
		}
	}
	return nil
}

// latency formats the p99, or the maximum if there were too few operations.
func (s *sayer) latency(c candidate, filter, what, prefix string) string {
	if f := s.figure(c, filter, prefix+"p99-ms"); f != nil {
		return what + " p99 " + f.In("ms")
	}
	if f := s.figure(c, filter, prefix+"max-ms"); f != nil {
		return "longest " + what + " " + f.In("ms")
	}
	return "no " + what + " finished"
}

// size formats a scale.
func (s *sayer) size(scale string) string {
	switch {
	case s.base:
		return report.Number(800_000*number(scale)) + " entities of the base profile (scale " + scale + ")"
	case scale == "1":
		return "the size of the source"
	}
	return scale + " times the source"
}

// ranked is a candidate with its figure, and the ratio to the first candidate's
// figure, or to the reference's if that was measured.
type ranked struct {
	candidate
	of *report.Figure
	by *report.Ratio
	to *ranked
}

// in formats a figure: of the reference with its unit, of others as a ratio to
// it.
func (r *ranked) in(unit string) string {
	if r.to == nil {
		return r.of.In(unit)
	}
	return r.by.In(unit, r.to.String())
}

// rank returns the candidates with enough runs, ordered by their ratios to the
// reference in shared sittings, the highest first.
func (s *sayer) rank(by func(candidate) *report.Figure) (list []ranked) {
	var reference *ranked
	for _, c := range s.all {
		r := ranked{candidate: c, of: by(c), to: reference}
		switch {
		case r.of == nil:
			continue
		case r.of.Busy > 0:
			s.exclude(c, "not busy")
			continue
		case r.of.Total() < report.Judged:
			s.exclude(c, tooFew)
			continue
		case r.of.Lo <= 0:
			s.exclude(c, "no operation finished")
			continue
		case reference == nil:
			reference = &r
		}
		if r.by = report.Pair(r.of, reference.of); r.by == nil {
			s.exclude(c, "not in a sitting with "+reference.String())
			continue
		}
		list = append(list, r)
	}
	slices.SortStableFunc(list, func(a, b ranked) int { return cmp.Compare(b.by.Median, a.by.Median) })
	// A candidate that does not differ significantly from the reference is not
	// named before it.
	if i := slices.IndexFunc(list, func(r ranked) bool { return r.to == nil }); i > 0 && list[0].by.Enough() && !list[0].by.Differs() {
		known := list[i]
		list = slices.Insert(slices.Delete(list, i, i+1), 0, known)
	}
	return list
}

// first formats the figure of the first candidate, and of the reference unless
// it comes second.
func first(list []ranked, unit string) string {
	text := list[0].in(unit)
	if to := list[0].to; to != nil && list[1].to != nil {
		text += ", which has " + to.of.In(unit)
	}
	return text
}

// end compares the first candidate with the second.
func end(list []ranked, write func(*ranked) string) string {
	if len(list) < 2 {
		return "; nothing else can be compared with it."
	}
	pair, word, where := report.Pair(list[0].of, list[1].of), "next is", ""
	switch {
	case pair == nil:
		word = "not in a sitting with it is"
	case !pair.Enough():
		word = "too few runs to tell it from"
	case !pair.Differs():
		word = "not told apart from"
	case pair.Hosts == 1:
		where = ", on this machine"
	}
	return fmt.Sprintf("; %s %s with %s%s.", word, list[1], write(&list[1]), where)
}

// inUnit returns a function that formats figures and ratios with a unit.
func inUnit(unit string) func(*ranked) string {
	return func(r *ranked) string { return r.in(unit) }
}

// highestRate is the sentence on the candidate with the highest rate, in the first
// unit that it has. More adds details of the reference, such as latencies.
func (s *sayer) highestRate(says, unit, filter, what string, more func(candidate) string, units ...string) string {
	list := s.rank(func(c candidate) *report.Figure { return s.figure(c, filter, units...) })
	if len(list) == 0 {
		return ""
	}
	text := fmt.Sprintf("At %s %s %s: %s", s.size(s.scale), list[0], says, first(list, unit))
	if list[0].to == nil {
		text += ", " + s.latency(list[0].candidate, filter, what, "") + more(list[0].candidate)
	}
	return text + end(list, inUnit(unit))
}

func (s *sayer) writes() string {
	nothing := func(candidate) string { return "" }
	return s.highestRate("keeps up most writes", "rows/s", s.at(s.scale)+"/rate:max", "commit", nothing, "settled-rows/s", "rows/s")
}

func (s *sayer) reads() string {
	alone := func(c candidate) string {
		one := s.at(s.scale) + "/clients:1"
		f := s.figure(c, one, "qps")
		if f == nil {
			return ""
		}
		return ", and with one " + f.In("reads/s") + ", " + s.latency(c, one, "read", "")
	}
	return s.highestRate("answers most reads of mix "+s.mix+" with 10 clients", "reads/s", s.at(s.scale)+"/clients:10", "read", alone, "qps")
}

// sustains judges whether all runs of a load were within the limits of the third
// question. The outcome is "" for a load that was not measured, and Unknown for
// one with too few runs.
func (s *sayer) sustains(c candidate, filter string, rows, reads float64) Outcome {
	asked, failed := s.figure(c, filter, "rows/s"), s.set.Failed(c.filter(filter))
	runs := failed
	if asked != nil {
		runs += asked.Total()
	}
	switch {
	case runs == 0:
		return ""
	case runs < report.Judged:
		return Unknown
	}
	for _, l := range sustainLimits("", rows, reads) {
		l.filter = filter
		if c.criterion(s.set, l).Outcome != Pass {
			return Fail
		}
	}
	return Pass
}

// delivered describes the results of a load, on each host, because its limits
// are times. Hosts have no names, because a reader has none of them.
func (s *sayer) delivered(c candidate, filter string) string {
	var parts []string
	filters := s.set.OnHosts(c.filter(filter))
	for i, on := range filters {
		rate := func(unit, as, late, skipped string) string {
			text := s.figure(c, on, unit).In(as)
			if f, g := s.figure(c, on, late), s.figure(c, on, skipped); f != nil && g != nil {
				text += fmt.Sprintf(" (%s late, %s given up)", report.Number(f.Center), report.Number(g.Center))
			}
			return text
		}
		text := rate("rows/s", "rows/s", "commit-late", "commit-skipped") + " with " + rate("qps", "reads/s", "late", "skipped") +
			", " + s.latency(c, on, "commit", "") + ", " + s.latency(c, on, "read", "read-")
		switch {
		case i > 0:
			text = "on another " + text
		case len(filters) > 1:
			text = "on one host " + text
		}
		parts = append(parts, text)
	}
	if n := s.set.Failed(c.filter(filter)); n > 0 {
		parts = append(parts, fmt.Sprintf("%d runs were killed or failed", n))
	}
	return strings.Join(parts, "; ")
}

// sweetSpot ranks by the sustained write rate, and then by the reads at that
// rate.
func (s *sayer) sweetSpot() string {
	// Find the highest rate that each candidate sustains, and the highest that
	// was asked of it.
	rates := numbers(s.tried, "rate")
	sustained, asked := map[candidate]string{}, map[candidate]string{}
	judged := false
	at := func(rate string) string { return s.at(s.scale) + "/rate:" + rate }
	for _, c := range s.all {
		known := false
		for _, rate := range slices.Backward(rates) {
			outcome := Outcome("")
			if rate != "0" {
				outcome = s.sustains(c, at(rate), number(rate), 0)
			}
			if outcome != "" {
				asked[c] = cmp.Or(asked[c], rate)
			}
			known = known || outcome == Pass || outcome == Fail
			if outcome == Pass {
				sustained[c] = rate
				break
			}
		}
		if asked[c] != "" && !known {
			s.exclude(c, tooFew)
		}
		judged = judged || known
	}

	// Rank the candidates that sustain the highest rate of all by their reads.
	const within = "with commits below 2 s and reads below 100 ms at p99"
	switch {
	case len(sustained) == 0 && !judged:
		return ""
	case len(sustained) == 0:
		return fmt.Sprintf("At %s nothing carried any rate of writes that was asked for %s; the table has what was delivered.", s.size(s.scale), within)
	}
	most := ""
	for _, rate := range sustained {
		if number(rate) > number(most) {
			most = rate
		}
	}
	list := s.rank(func(c candidate) *report.Figure {
		if sustained[c] != most {
			return nil
		}
		return s.figure(c, at(most), "qps")
	})
	if len(list) == 0 {
		return ""
	}
	best := list[0].candidate
	text := fmt.Sprintf("At %s %s carries most of both %s: asked for %s rows/s it delivers %s", s.size(s.scale), best, within, report.Number(number(most)), s.delivered(best, at(most)))
	if len(list) > 1 {
		text += end(list, inUnit("reads/s"))
	} else {
		text += "; nothing else carries that rate."
	}

	// Add what the others sustain, and which were not asked for more.
	var others []string
	for _, c := range s.all {
		var parts []string
		if rate := sustained[c]; rate != "" && rate != most {
			parts = append(parts, fmt.Sprintf("carries %s rows/s", report.Number(number(rate))))
		}
		if asked[c] != "" && asked[c] == sustained[c] && number(asked[c]) < number(rates[len(rates)-1]) {
			parts = append(parts, "was not asked for more")
		}
		if len(parts) > 0 {
			others = append(others, c.String()+" "+strings.Join(parts, " and "))
		}
	}
	if len(others) > 0 {
		text += " " + strings.Join(others, ", ") + "."
	}
	return text
}

// kept ranks by the share of a figure that remains from one size to another,
// both in the same sitting.
func (s *sayer) kept(at func(candidate, string) *report.Figure, smallest, largest string) []ranked {
	return s.rank(func(c candidate) *report.Figure {
		from, to := at(c, smallest), at(c, largest)
		if from == nil || to == nil {
			return nil
		}
		part := report.Part(to, from)
		if part == nil {
			s.exclude(c, "its sizes are of different sittings")
		}
		return part
	})
}

// degradation ranks by the remaining writes, and separately by the remaining
// reads, because one may slow down while the other does not.
func (s *sayer) degradation() string {
	if len(s.sizes) < 2 {
		return "Not known: one size was measured, " + s.size(s.scale) + ". varve answer measures more of them in more --time."
	}
	smallest, largest := s.sizes[0], s.sizes[len(s.sizes)-1]
	list := s.kept(func(c candidate, scale string) *report.Figure {
		return s.figure(c, s.at(scale)+"/rate:max", "settled-rows/s", "rows/s")
	}, smallest, largest)
	if len(list) == 0 {
		return ""
	}
	percent := func(r *ranked) string { return r.of.In("%") }
	text := fmt.Sprintf("From %s to %s %s keeps most of its writes: %s of the rows/s%s", s.size(smallest), s.size(largest), list[0], percent(&list[0]), end(list, percent))
	reads := newSayer(s.whole, "C1")
	list = reads.kept(func(c candidate, scale string) *report.Figure {
		return reads.figure(c, reads.at(scale)+"/clients:10", "qps")
	}, smallest, largest)
	if len(list) > 0 {
		text += fmt.Sprintf(" Of its reads of mix %s with 10 clients %s keeps most: %s%s", reads.mix, list[0], percent(&list[0]), end(list, percent))
	}
	return text
}

func (s *sayer) firstVersion() string {
	filter := func(rows, reads float64) string {
		return fmt.Sprintf("%s/rate:%.0f /qps:%.0f", s.at(s.scale), rows, reads)
	}
	type counts struct {
		candidate
		carried, judged, seldom, unasked int    // loads; seldom have too few runs
		load                             string // the largest that it carries, or the smallest judged
	}
	best := counts{carried: -1}
	for _, c := range s.all {
		n := counts{candidate: c}
		for _, v := range report.FirstVersion {
			switch f := filter(v[0], v[1]); s.sustains(c, f, v[0], v[1]) {
			case Pass:
				n.carried, n.judged, n.load = n.carried+1, n.judged+1, f
			case Fail:
				n.judged, n.load = n.judged+1, cmp.Or(n.load, f)
			case Unknown:
				n.seldom++
			case "":
				n.unasked++
			}
		}
		switch {
		case n.judged == 0 && n.seldom > 0:
			s.exclude(c, tooFew)
		case n.judged > 0 && n.carried > best.carried:
			best = n
		}
	}
	if best.carried < 0 {
		return ""
	}
	text := fmt.Sprintf("At %s %s carries %d of the %d V1 loads that were asked of it, and none carries more; of the largest of them it delivers ", s.size(s.scale), best, best.carried, best.judged)
	if best.carried == 0 {
		text = fmt.Sprintf("At %s nothing carries any of the V1 loads that were asked; of the smallest of them %s delivers ", s.size(s.scale), best)
	}
	text += s.delivered(best.candidate, best.load) + "."
	if best.unasked > 0 {
		text += fmt.Sprintf(" Of V1's nine loads %d were not asked of it.", best.unasked)
	}
	if best.seldom > 0 {
		text += fmt.Sprintf(" %d have too few runs to be judged.", best.seldom)
	}
	return text
}

// only returns a set's lines of some experiments, without lines for single
// kinds of operations.
func only(set *report.Set, experiments ...string) *report.Set {
	of := func(lines []*benchfmt.Result) []*benchfmt.Result {
		return slices.DeleteFunc(slices.Clone(lines), func(l *benchfmt.Result) bool {
			return !slices.Contains(experiments, l.GetConfig("experiment")) || report.Key(l, "kind") != ""
		})
	}
	return &report.Set{Lines: of(set.Lines), Excluded: of(set.Excluded)}
}

func number(text string) float64 {
	v, _ := strconv.ParseFloat(text, 64) // names of sizes and rates are numbers
	return v
}
