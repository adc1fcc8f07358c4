package compact

// WaitingKeys returns how many keys wait in runs, by the stored list of runs.
func WaitingKeys(stored []byte) (n int64, err error) {
	p := progress{}
	if err := p.decodeRuns(stored); err != nil {
		return 0, err
	}
	for _, r := range p.keys.runs {
		n += r.count
	}
	return n, nil
}
