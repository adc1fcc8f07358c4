package rebac

import "github.com/varvedb/varve/internal/splitmix"

// Answer is what a question has for an answer: how many ids, and a sum of what
// each is scrambled to. Two sets of ids of one sum and number are the same but for
// a chance of one in 2⁶⁴; an id that comes twice, or another one, shows.
type Answer struct {
	Count int
	Sum   uint64
}

// add takes one more id.
func (a *Answer) add(id int64) {
	a.Count++
	a.Sum += splitmix.Scramble(uint64(id))
}
