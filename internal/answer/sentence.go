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

// templates are the sentences of the five questions by their ids, with the experiment that each is
// of. Only the names and figures in them are computed; they are "" where there are none.
var templates = map[string]struct {
	experiment string
	say        func(*sayer) string
}{
	"1": {"D1", (*sayer).writes}, "2": {"C1", (*sayer).reads}, "3": {"I3", (*sayer).sweetSpot},
	"4": {"D1", (*sayer).degradation}, "5": {"I5", (*sayer).firstVersion},
}

// say returns the sentence of a question.
func say(set *report.Set, id string) (string, error) {
	t := templates[id]
	s, text := newSayer(set, t.experiment), ""
	if len(s.all) > 0 {
		text = t.say(s)
	}
	switch short := tooShort(s.set); {
	case text != "" && short != "":
		text = "Cannot be judged: " + short + ". The tables have the figures; more --time makes phases longer."
	case text == "" && len(s.unjudged) > 0:
		text = fmt.Sprintf("Cannot be judged: n is below %d for %s. The tables have the figures; more --time repeats them.", report.Judged, names(s.unjudged))
	case text == "":
		text = "Not known: nothing was measured of it. varve answer measures it, and varve run " + t.experiment + " that alone."
	case len(s.unjudged) > 0:
		text += fmt.Sprintf(" Not judged, since n is below %d: %s.", report.Judged, names(s.unjudged))
	}
	return text, s.err
}

// names writes candidates.
func names(list []candidate) string {
	texts := make([]string, len(list))
	for i, c := range list {
		texts[i] = c.String()
	}
	return strings.Join(texts, ", ")
}

// judgedPhase is how long a phase lasts that is judged: a shorter one may end
// before the first checkpoint or merge.
const judgedPhase = time.Second

// tooShort names a phase of a set that is too short to be judged, "" when there
// is none.
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
	all   []candidate
	sizes []string // scales, the smallest first
	scale string   // the largest of those at which most candidates were measured
	base  bool     // scales are those of the base profile
	mix   string   // that the sentence is of: the first of mixes; the tables have the others
	err   error

	unjudged []candidate // that have too few measurements to be ranked
}

const mixes = "WBAC"

func newSayer(set *report.Set, experiment string) *sayer {
	s := &sayer{whole: set, set: only(set, experiment), base: true}
	seen, count := make(map[string]bool), make(map[string]int) // candidates of each size
	for _, l := range s.set.Lines {
		c, scale := candidate{report.Key(l, "engine"), report.Key(l, "layout")}, report.Key(l, "scale")
		if !slices.Contains(s.all, c) {
			s.all = append(s.all, c)
		}
		if at := scale + " " + c.String(); scale != "" && !seen[at] {
			seen[at] = true
			count[scale]++
		}
		profile := report.Key(l, "profile")
		s.base = s.base && (profile == "" || strings.HasPrefix(profile, baseProfile))
	}
	s.sizes = s.numbers("scale")
	for _, size := range s.sizes {
		if count[size] >= count[s.scale] {
			s.scale = size
		}
	}
	found := s.set.Values("mix")
	for i := len(mixes) - 1; i >= 0; i-- {
		if slices.Contains(found, mixes[i:i+1]) {
			s.mix = mixes[i : i+1]
		}
	}
	return s
}

// numbers are the values of a key, the smallest first.
func (s *sayer) numbers(key string) []string {
	list := s.set.Values(key)
	slices.SortFunc(list, func(a, b string) int { return cmp.Compare(number(a), number(b)) })
	return list
}

// at is the filter of a size, and of the mix where there are mixes.
func (s *sayer) at(scale string) string {
	if s.mix != "" {
		return "/scale:" + scale + " /mix:" + s.mix + " "
	}
	return "/scale:" + scale + " "
}

// figure is that of a candidate in the first of the units that it has, nil for none.
func (s *sayer) figure(c candidate, filter string, units ...string) *report.Figure {
	for _, unit := range units {
		f, err := s.set.Figure(c.filter(filter), unit)
		s.err = cmp.Or(s.err, err)
		if f != nil {
			return f
		}
	}
	return nil
}

// in writes a figure with its unit.
func (s *sayer) in(f *report.Figure, unit string) string {
	if f == nil {
		return "an unknown number of " + unit
	}
	return f.In(unit)
}

// latency writes the p99, or the longest where there were too few operations for that.
func (s *sayer) latency(c candidate, filter, what, prefix string) string {
	if f := s.figure(c, filter, prefix+"p99-ms"); f != nil {
		return what + " p99 " + s.in(f, "ms")
	}
	if f := s.figure(c, filter, prefix+"max-ms"); f != nil {
		return "longest " + what + " " + s.in(f, "ms")
	}
	return "no " + what + " finished"
}

// size writes a scale.
func (s *sayer) size(scale string) string {
	switch {
	case s.base:
		return report.Number(800_000*number(scale)) + " entities of the base profile (scale " + scale + ")"
	case scale == "1":
		return "the size of the source"
	}
	return scale + " times the source"
}

// ranked is a candidate with the figure that gives its rank.
type ranked struct {
	candidate
	by *report.Figure
}

// rank orders the candidates that have a figure of enough measurements, the
// highest first.
func (s *sayer) rank(by func(candidate) *report.Figure) (list []ranked) {
	for _, c := range s.all {
		switch f := by(c); {
		case f == nil:
		case f.N < report.Judged:
			s.leave(c)
		default:
			list = append(list, ranked{c, f})
		}
	}
	slices.SortStableFunc(list, func(a, b ranked) int { return cmp.Compare(b.by.Center, a.by.Center) })
	return list
}

// leave leaves a candidate out of the judgement.
func (s *sayer) leave(c candidate) {
	if !slices.Contains(s.unjudged, c) {
		s.unjudged = append(s.unjudged, c)
	}
}

// end compares the first candidate with the second.
func (s *sayer) end(list []ranked, unit string) string {
	switch {
	case len(list) < 2 && len(s.unjudged) > 0:
		return "; nothing else was measured often enough."
	case len(list) < 2:
		return "; nothing else was measured of it."
	}
	word := "not told apart from"
	if list[0].by.Apart(list[1].by) {
		word = "next is"
	}
	return fmt.Sprintf("; %s %s with %s.", word, list[1], s.in(list[1].by, unit))
}

func (s *sayer) writes() string {
	most := s.at(s.scale) + "/rate:max"
	list := s.rank(func(c candidate) *report.Figure { return s.figure(c, most, "settled-rows/s", "rows/s") })
	if len(list) == 0 {
		return ""
	}
	if list[0].by.Center <= 0 {
		return fmt.Sprintf("At %s no commit finished.", s.size(s.scale))
	}
	return fmt.Sprintf("At %s %s keeps up most writes: %s, %s%s", s.size(s.scale), list[0], s.in(list[0].by, "rows/s"),
		s.latency(list[0].candidate, most, "commit", ""), s.end(list, "rows/s"))
}

func (s *sayer) reads() string {
	one, ten := s.at(s.scale)+"/clients:1", s.at(s.scale)+"/clients:10"
	list := s.rank(func(c candidate) *report.Figure { return s.figure(c, ten, "qps") })
	if len(list) == 0 {
		return ""
	}
	if list[0].by.Center <= 0 {
		return fmt.Sprintf("At %s no read of mix %s finished.", s.size(s.scale), s.mix)
	}
	best, alone := list[0].candidate, ""
	if f := s.figure(best, one, "qps"); f != nil {
		alone = ", and " + s.in(f, "reads/s") + " with one, " + s.latency(best, one, "read", "")
	}
	return fmt.Sprintf("At %s %s answers most reads of mix %s: %s with 10 clients, %s%s%s", s.size(s.scale), best, s.mix,
		s.in(list[0].by, "reads/s"), s.latency(best, ten, "read", ""), alone, s.end(list, "reads/s"))
}

// carries judges whether all measurements of a load were within the limits of the
// third question. A load that was not asked has no outcome, which is "".
func (s *sayer) carries(c candidate, filter string, rows, reads float64) Outcome {
	asked := s.figure(c, filter, "rows/s")
	if asked == nil {
		return ""
	}
	if asked.N < report.Judged {
		s.leave(c)
		return Unknown
	}
	for _, l := range carried(filter, rows, reads) {
		k, err := c.criterion(s.set, l)
		s.err = cmp.Or(s.err, err)
		if k.Figure == nil || !l.holds(k.Figure) {
			return Fail
		}
	}
	return Pass
}

// delivered writes what came of a load.
func (s *sayer) delivered(c candidate, filter string) string {
	return fmt.Sprintf("%s with %s, %s, %s", s.in(s.figure(c, filter, "rows/s"), "rows/s"), s.in(s.figure(c, filter, "qps"), "reads/s"),
		s.latency(c, filter, "commit", ""), s.latency(c, filter, "read", "read-"))
}

// sweetSpot ranks by the rate of writes that is carried, and by the reads of the
// candidates that carry the same.
func (s *sayer) sweetSpot() string {
	rates := s.numbers("rate")
	spots, asked := map[candidate]string{}, map[candidate]string{} // the highest rates that each carries, and was asked for
	judged := false
	at := func(c candidate) string { return s.at(s.scale) + "/rate:" + spots[c] }
	list := s.rank(func(c candidate) *report.Figure {
		for _, rate := range slices.Backward(rates) {
			spots[c] = rate
			outcome := Outcome("")
			if rate != "0" {
				outcome = s.carries(c, at(c), number(rate), 0)
			}
			if outcome != "" {
				asked[c] = cmp.Or(asked[c], rate)
			}
			judged = judged || outcome == Pass || outcome == Fail
			if outcome == Pass {
				return s.figure(c, at(c), "qps")
			}
		}
		return nil
	})
	const within = "with commits below 2 s and reads below 100 ms at p99"
	switch {
	case len(list) == 0 && !judged:
		return ""
	case len(list) == 0:
		return fmt.Sprintf("At %s nothing carried any rate of writes that was asked for %s; the table has what was delivered.", s.size(s.scale), within)
	}
	slices.SortStableFunc(list, func(a, b ranked) int { return cmp.Compare(number(spots[b.candidate]), number(spots[a.candidate])) })
	best, unit := list[0].candidate, "reads/s"
	if len(list) > 1 && spots[list[1].candidate] != spots[best] {
		unit = "rows/s"
		for i, r := range list {
			list[i].by = s.figure(r.candidate, at(r.candidate), unit)
		}
	}
	text := fmt.Sprintf("At %s %s carries most of both %s: %s%s", s.size(s.scale), best, within, s.delivered(best, at(best)), s.end(list, unit))
	for _, r := range list[:min(len(list), 2)] {
		if most := asked[r.candidate]; most == spots[r.candidate] && number(most) < number(rates[len(rates)-1]) {
			text += fmt.Sprintf(" Above %s rows/s %s was not asked.", report.Number(number(most)), r.candidate)
		}
	}
	return text
}

// kept ranks by the part that is left of a figure from one size to another.
func (s *sayer) kept(at func(candidate, string) *report.Figure, smallest, largest string) []ranked {
	return s.rank(func(c candidate) *report.Figure {
		from, to := at(c, smallest), at(c, largest)
		if from == nil || to == nil || from.Lo <= 0 {
			return nil
		}
		return &report.Figure{N: min(from.N, to.N), Center: 100 * to.Center / from.Center, Lo: 100 * to.Lo / from.Hi, Hi: 100 * to.Hi / from.Lo}
	})
}

// degradation ranks by the writes that are kept, and by the reads apart from
// these, because one may slow down where the other does not.
func (s *sayer) degradation() string {
	if len(s.sizes) < 2 {
		return "Not known: one size was measured, " + s.size(s.scale) + ". varve answer measures more of them in more --time."
	}
	smallest, largest := s.sizes[0], s.sizes[len(s.sizes)-1]
	rows := func(c candidate, scale string) *report.Figure {
		return s.figure(c, s.at(scale)+"/rate:max", "settled-rows/s", "rows/s")
	}
	list := s.kept(rows, smallest, largest)
	if len(list) == 0 {
		return ""
	}
	best := list[0].candidate
	text := fmt.Sprintf("From %s to %s %s keeps most of its writes: from %s to %s, that is %s%s", s.size(smallest), s.size(largest), best,
		s.in(rows(best, smallest), "rows/s"), s.in(rows(best, largest), "rows/s"), s.in(list[0].by, "%"), s.end(list, "%"))
	reads := newSayer(s.whole, "C1")
	ten := func(c candidate, scale string) *report.Figure {
		return reads.figure(c, reads.at(scale)+"/clients:10", "qps")
	}
	if list = reads.kept(ten, smallest, largest); len(list) > 0 {
		best = list[0].candidate
		text += fmt.Sprintf(" Of its reads of mix %s with 10 clients %s keeps most: from %s to %s, that is %s%s", reads.mix, best,
			s.in(ten(best, smallest), "reads/s"), s.in(ten(best, largest), "reads/s"), s.in(list[0].by, "%"), reads.end(list, "%"))
	}
	s.err = cmp.Or(s.err, reads.err)
	return text
}

func (s *sayer) firstVersion() string {
	filter := func(rows, reads float64) string {
		return fmt.Sprintf("%s/rate:%.0f /qps:%.0f", s.at(s.scale), rows, reads)
	}
	var best candidate
	var last string // the largest load that it carries, or the smallest that it was asked for
	most, of := -1, 0
	for _, c := range s.all {
		count, asked, load := 0, 0, ""
		for _, v := range report.FirstVersion {
			switch f := filter(v[0], v[1]); s.carries(c, f, v[0], v[1]) {
			case Pass:
				count, asked, load = count+1, asked+1, f
			case Fail:
				asked, load = asked+1, cmp.Or(load, f)
			}
		}
		if asked > 0 && count > most {
			best, most, of, last = c, count, asked, load
		}
	}
	if most < 0 {
		return ""
	}
	rest := ""
	if n := len(report.FirstVersion) - of; n > 0 {
		rest = fmt.Sprintf(" Of V1's nine loads %d were not asked of it often enough to be judged.", n)
	}
	if most == 0 {
		return fmt.Sprintf("At %s nothing carries any of the V1 loads that were asked; of the smallest of them %s delivers %s.%s", s.size(s.scale), best, s.delivered(best, last), rest)
	}
	return fmt.Sprintf("At %s %s carries %d of the %d V1 loads that were asked of it, none carries more; of the largest of them it delivers %s.%s", s.size(s.scale), best, most, of, s.delivered(best, last), rest)
}

// only is what a set has of experiments, without single kinds of operations.
func only(set *report.Set, experiments ...string) *report.Set {
	return &report.Set{Lines: slices.DeleteFunc(slices.Clone(set.Lines), func(l *benchfmt.Result) bool {
		return !slices.Contains(experiments, l.GetConfig("experiment")) || report.Key(l, "kind") != ""
	})}
}

func number(text string) float64 {
	v, _ := strconv.ParseFloat(text, 64) // names of sizes and rates are numbers
	return v
}
