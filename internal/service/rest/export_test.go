package rest

// Routes returns what the interface serves.
func Routes() (list []string) {
	for _, r := range routes() {
		list = append(list, r.method+" "+r.path)
	}
	return list
}
