package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/varvedb/varve/internal/storeurl"
	"github.com/varvedb/varve/store"
	"github.com/varvedb/varve/store/driver"
)

// inspectCmd prints a store's settings, counts and sizes.
type inspectCmd struct {
	URL  string `arg:"" store:"" help:"Store to read."`
	JSON bool   `help:"Print JSON."`
}

// inspection is the result as printed.
type inspection struct {
	Engine   driver.Info      `json:"engine"`
	Commits  string           `json:"durability"` // of who writes by this URL
	Store    store.Summary    `json:"store"`
	Stats    driver.Stats     `json:"stats"`
	Settings []driver.Setting `json:"settings"`
}

// Run prints the figures.
func (c *inspectCmd) Run(e *env) (err error) {
	db, ents, err := e.openEntities(c.URL, readOnly, store.EntityOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	in := inspection{Engine: db.Engine().Info()}
	if in.Store, err = ents.Summary(e.ctx); err != nil {
		return err
	}
	if in.Stats, err = db.Engine().Stats(e.ctx); err != nil {
		return err
	}
	if in.Settings, err = db.Engine().Settings(e.ctx); err != nil {
		return err
	}
	target, err := storeurl.Parse(c.URL, nil)
	if err != nil {
		return err
	}
	in.Commits = string(cmp.Or(target.Options.Durability, driver.Durable))
	if i := slices.IndexFunc(in.Settings, func(s driver.Setting) bool { return s.Name == "durability" }); i >= 0 {
		in.Commits = in.Settings[i].Value // as read back from a server
	}
	if c.JSON {
		return printJSON(e.stdout, in)
	}
	return in.print(e)
}

func (in *inspection) print(e *env) error {
	w := tabwriter.NewWriter(e.stdout, 0, 4, 2, ' ', 0)
	line := func(name string, value any) { fmt.Fprintf(w, "%s\t%v\n", name, value) }
	line("engine", in.Engine.Name+" "+in.Engine.Version)
	line("layout", in.Store.Layout)
	line("durability", in.Commits+" for who writes by this URL")
	line("head", in.Store.Head)
	line("digest", in.Store.Digest)
	line("blocks", fmt.Sprintf("%d, from %d", in.Store.Blocks, in.Store.First))
	if in.Store.Horizon > 0 {
		line("readable from block", in.Store.Horizon)
	}
	line("entities at the head", in.Store.Live)
	for _, table := range slices.Sorted(maps.Keys(in.Store.Tables)) {
		line("rows in "+table, in.Store.Tables[table])
	}
	if n := in.Stats.DatabaseBytes; n != nil {
		line("database", size(uint64(*n)))
	}
	if n := in.Stats.WALBytes; n != nil {
		line("write-ahead log", size(uint64(*n)))
	}
	fmt.Fprintln(w, "\nsettings of this reader, as read back\t")
	for _, s := range in.Settings {
		line("  "+s.Name, s.Value)
	}
	return w.Flush()
}
