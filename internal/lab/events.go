package lab

import (
	"context"
	"slices"

	"github.com/varvedb/varve/bench"
	"github.com/varvedb/varve/bench/enrolment"
	"github.com/varvedb/varve/bench/pace"
)

// manyEvents is the size of the largest data set at scale 1.
const manyEvents = 1_000_000

// Enrolments returns the data sets at the lab's scale.
func (l *Lab) Enrolments() []enrolment.Data {
	sizes := []enrolment.Data{enrolment.Tiny, enrolment.Small}
	if n := l.Scaled(manyEvents, 0); n > enrolment.Small.Len() {
		sizes = append(sizes, enrolment.Many(n))
	}
	return sizes
}

// events plans groups of the workloads of package enrolment: courses, students
// and enrolments, as go-crablet measures them. Their phases are short, because
// there are many.
func events(groups ...string) func(*Lab) ([]Variant, error) {
	return func(l *Lab) (list []Variant, _ error) {
		for _, data := range l.Enrolments() {
			for _, w := range enrolment.Workloads(data) {
				if !slices.Contains(groups, w.Group) {
					continue
				}
				d := data.Dataset(l.Engine)
				v := Variant{Name: "Event" + w.Group, Keys: l.On(enrolment.Layout, data.Name, w.Key, w.Value), Cost: Cost{Phases: .5}, Run: On(d, func(t *Trial) (Workload, error) {
					return func(ctx context.Context) (bench.Result, error) {
						return w.Run(ctx, t.Copy, pace.Config{Duration: l.Phase / 2})
					}, nil
				})}
				if !w.Memory {
					v.Each = l.eachOn(d, func(ctx context.Context, cp *bench.Copy) (*bench.Operations, error) {
						return w.Operations(ctx, cp.Events)
					})
				}
				list = append(list, v)
			}
		}
		return list, nil
	}
}
