package scaler

// Check tests whether a stream has the distributions of the profile. A cycle
// that is cut may have a few entities more of one kind and fewer of another
// than the profile says; a whole one has not, so that p of the kinds is 1.
func (p *Profile) Check(d *Distributions) []Test {
	tests := []Test{
		p.checkKinds(d), p.checkEnds(d),
		ks("lifetime", &d.Lifetime, p.lifetimeCDF),
		chiSquare("string attributes an entity", d.Texts.Counts, p.attributes(d, textsMissing)),
		chiSquare("numeric attributes an entity", d.Numbers.Counts, p.attributes(d, numbersMissing)),
		p.checkBlocks(d),
	}
	for i := range p.Kinds {
		k := &p.Kinds[i]
		if sizes, ok := d.PayloadOf[k.Name]; ok {
			tests = append(tests, ks("payload bytes of "+k.Name, &sizes, k.Payload.Size.CDF))
		}
		for _, t := range k.Texts {
			if t.Source == OneOf {
				tests = append(tests, checkValues(k.Name+"/"+t.Name, d, t.Values))
			}
		}
	}
	return tests
}

func (p *Profile) checkKinds(d *Distributions) Test {
	counts, shares := make([]uint64, len(p.Kinds)+1), make([]float64, len(p.Kinds)+1)
	rest := d.Entities
	for i := range p.Kinds {
		counts[i] = d.Kinds.Counts[p.Kinds[i].Name]
		shares[i] = float64(p.Kinds[i].Count) / float64(p.Entities())
		rest -= counts[i]
	}
	counts[len(p.Kinds)] = rest // of other kinds
	return chiSquare("kinds", counts, shares)
}

// checkEnds compares how many expire. What is deleted is not told from what is
// persistent when it is created.
func (p *Profile) checkEnds(d *Distributions) Test {
	var expires float64
	for i := range p.Kinds {
		expires += p.Kinds[i].expiring() / float64(p.Entities())
	}
	return chiSquare("expires or not", []uint64{d.Lifetime.N, d.Entities - d.Lifetime.N}, []float64{expires, 1 - expires})
}

// expiring returns how many entities of a cycle expire on average.
func (k *Kind) expiring() float64 {
	f := k.Fate
	return float64(k.Count) * float64(f.Ephemeral) / float64(f.Persistent+f.Ephemeral+f.Deleted)
}

func (p *Profile) lifetimeCDF(x uint64) float64 {
	var sum, all float64
	for i := range p.Kinds {
		if n := p.Kinds[i].expiring(); n > 0 {
			sum += n * p.Kinds[i].Fate.Lifetime.CDF(x)
			all += n
		}
	}
	return sum / all
}

func textsMissing(k *Kind) (always int, missing []uint64) {
	for _, t := range k.Texts {
		missing = append(missing, t.Missing)
	}
	return 1, missing // 1: "type"
}

func numbersMissing(k *Kind) (always int, missing []uint64) {
	for _, n := range k.Numbers {
		missing = append(missing, n.Missing)
	}
	return 0, missing
}

// attributes returns the probability of each number of attributes. The kinds
// have the shares that they have in d: whether those are right is another test.
func (p *Profile) attributes(d *Distributions, missing func(*Kind) (int, []uint64)) []float64 {
	sum := make([]float64, len(d.Texts.Counts))
	for i := range p.Kinds {
		k := &p.Kinds[i]
		n, rates := missing(k)
		has := make([]float64, len(sum))
		has[n] = float64(d.Kinds.Counts[k.Name]) / float64(max(d.Entities, 1))
		for _, rate := range rates {
			absent := float64(rate) / 1000
			for j := len(has) - 1; j > 0; j-- {
				has[j] = has[j]*absent + has[j-1]*(1-absent)
			}
			has[0] *= absent
		}
		for j := range sum {
			sum[j] += has[j]
		}
	}
	return sum
}

func checkValues(name string, d *Distributions, values []Choice) Test {
	got := d.Values[name]
	counts, shares := make([]uint64, len(values)+1), make([]float64, len(values)+1)
	for i, c := range values {
		counts[i] = got.Counts[c.Value]
		shares[i] = float64(c.Weight) / float64(totalWeight(values))
	}
	for _, n := range got.Counts {
		counts[len(values)] += n
	}
	for _, n := range counts[:len(values)] {
		counts[len(values)] -= n // what remains is of other values
	}
	if got.Many {
		counts[len(values)] = 1
	}
	return chiSquare("values of "+name, counts, shares)
}

func (p *Profile) checkBlocks(d *Distributions) Test {
	counts := d.EntitiesPerBlock.Counts
	shares := make([]float64, len(counts))
	var all float64
	for size, n := range p.batches() {
		shares[min(size, len(shares)-1)] += n
		all += n
	}
	for i := range shares {
		shares[i] /= all
	}
	return chiSquare("entities a block", counts, shares)
}

// batches returns how many batches of each size a whole cycle has on average,
// the cut last one included.
func (p *Profile) batches() []float64 {
	n := int(p.Entities())
	chance := make([]float64, n+1) // of each size
	for _, b := range p.Batches {
		for size := b.From; size <= b.To; size++ {
			chance[min(size, uint64(n))] += float64(b.Permille) / 1000 / float64(b.To-b.From+1)
		}
	}
	atLeast := make([]float64, n+2)
	for size := n; size > 0; size-- {
		atLeast[size] = atLeast[size+1] + chance[size]
	}
	// reached[left] is the probability that a batch begins with left entities to
	// go.
	reached := make([]float64, n+1)
	reached[n] = 1
	expected := make([]float64, n+1)
	for left := n; left > 0; left-- {
		for size := 1; size < left; size++ {
			reached[left-size] += reached[left] * chance[size]
			expected[size] += reached[left] * chance[size]
		}
		expected[left] += reached[left] * atLeast[left]
	}
	return expected
}
