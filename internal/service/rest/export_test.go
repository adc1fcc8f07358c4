package rest

// Routes returns the routes of the interface.
func Routes() (list []string) {
	for _, r := range routes() {
		list = append(list, r.method+" "+r.path)
	}
	return list
}
