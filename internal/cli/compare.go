package cli

type compareCmd struct{}

func (c *compareCmd) Run(e *env) error { return nil }

type workerCmd struct{}

func (c *workerCmd) Run(e *env) error { return nil }
