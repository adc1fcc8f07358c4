package scaler

import "github.com/varvedb/varve/store/entity"

// nodes and workloads, for the read mix A. Their ids and data centres differ
// from those in package dcseed, whose queries have exact answers, so that both
// can be in one store.
func nodes() Kind {
	return Kind{
		Name: "node", Count: 40, Runs: Histogram{{600, 1, 1}, {300, 2, 8}, {100, 9, 40}},
		Accounts: Accounts{1000, 150}, Fate: always,
		Steps: []Step{
			{entity.Update, 200, fewDays},
			{entity.Update, 50, fewDays},
			{entity.ChangeOwner, 10, fewDays},
		},
		Payload: Payload{Types: smallJSON, Form: Document,
			Size: Histogram{{700, 500, 2500}, {280, 2501, 8000}, {20, 8001, 30000}}},
		Texts: []Text{
			{Name: "node_id", Source: Serial, Prefix: "node_mz_", Digits: 6},
			pooled("dc_id", "dc_mz_", 4),
			oneOf("region", regions...),
			{Name: "status", Values: nodeStatus(), Later: nodeStatus()},
			oneOf("vm_type", Choice{"cpu", 700}, Choice{"gpu", 250}, Choice{"gpu_large", 50}),
			randomText("hostname", Words, 2),
			oneOf("os", Choice{"debian-12", 600}, Choice{"ubuntu-24", 350}, Choice{"talos-1", 50}),
			oneOf("arch", Choice{"amd64", 850}, Choice{"arm64", 150}),
			pooled("rack", "rack-", 200),
			pooled("provider", "provider-", 25),
			randomText("identity", Hex, 64),
			oneOf("tier", Choice{"bronze", 500}, Choice{"silver", 350}, Choice{"gold", 150}),
		},
		Numbers: []Number{
			{Name: "allocatable_gpu", Varies: true,
				Values: Histogram{{700, 0, 0}, {100, 1, 1}, {80, 2, 2}, {70, 3, 4}, {50, 5, 8}}},
			{Name: "cpu_count", Values: Histogram{{300, 4, 4}, {300, 8, 8}, {250, 16, 16}, {150, 32, 32}}},
			{Name: "ram_gb", Values: Histogram{{250, 16, 16}, {300, 32, 32}, {300, 64, 64}, {150, 128, 128}}},
			uniform("price_hour", 50, 500),
			{Name: "avail_hours", Varies: true,
				Values: Histogram{{100, 1, 1}, {200, 4, 4}, {250, 8, 8}, {250, 24, 24}, {200, 168, 168}}},
		},
	}
}

func nodeStatus() []Choice { return []Choice{{"available", 700}, {"busy", 250}, {"offline", 50}} }

func workloads() Kind {
	return Kind{
		Name: "workload", Count: 64, Runs: Histogram{{500, 1, 1}, {400, 2, 10}, {100, 11, 64}},
		Accounts: Accounts{1100, 700},
		Fate:     Fate{Persistent: 1, Ephemeral: 1, Lifetime: fewHours},
		Steps: []Step{
			{entity.ExtendBTL, 60, Histogram{{1000, 1, 2 * hour}}},
			{entity.Update, 250, Histogram{{1000, 1, 4 * hour}}},
		},
		Payload: Payload{Types: []Choice{{"application/json", 6}, {"application/yaml", 4}}, Form: Document,
			Size: Histogram{{600, 400, 2500}, {370, 2501, 8000}, {30, 8001, 50000}}},
		Texts: []Text{
			{Name: "workload_id", Source: Serial, Prefix: "wl_mz_", Digits: 6},
			pooled("dc_id", "dc_mz_", 4),
			{Name: "assigned_node", Source: ID, Of: "node"},
			{Name: "status", Values: []Choice{{"pending", 150}, {"running", 800}, {"completed", 50}},
				Later: []Choice{{"completed", 900}, {"failed", 100}}},
			{Name: "region", Values: []Choice{{"eu-west", 300}, {"us-east", 300}, {"any", 400}}},
			oneOf("vm_type", Choice{"cpu", 700}, Choice{"gpu", 250}, Choice{"gpu_large", 50}),
			pooled("image", "registry/image-", 150),
			pooled("tenant", "tenant-", 300),
			oneOf("queue", Choice{"batch", 600}, Choice{"interactive", 300}, Choice{"spot", 100}),
			randomText("digest", Hex, 64),
			oneOf("restart", Choice{"never", 500}, Choice{"on-failure", 400}, Choice{"always", 100}),
			randomText("label", Words, 2),
		},
		Numbers: []Number{
			{Name: "req_cpu", Values: Histogram{{400, 1, 1}, {300, 2, 2}, {200, 4, 4}, {100, 8, 8}}},
			{Name: "req_ram", Values: Histogram{{350, 4, 4}, {300, 8, 8}, {250, 16, 16}, {100, 32, 32}}},
			{Name: "max_hours", Values: Histogram{{300, 1, 1}, {250, 2, 2}, {200, 4, 4}, {150, 8, 8}, {100, 24, 24}}},
			clock("submittedAt"), uniform("priority", 0, 9),
		},
	}
}

// documents and listings: the rest, as examples of other uses.
func documents() Kind {
	return Kind{
		Name: "document", Count: 48, Runs: Histogram{{800, 1, 1}, {200, 2, 5}}, Accounts: Accounts{500, 3000},
		Fate: Fate{Persistent: 11, Deleted: 1, DeletedAfter: fewDays},
		Steps: []Step{
			{entity.Update, 60, fewDays},
			{entity.ChangeOwner, 20, fewDays},
		},
		Payload: Payload{Types: []Choice{{"text/markdown", 6}, {"application/json", 4}}, Form: Document,
			Size: Histogram{{500, 300, 3000}, {350, 3001, 9000}, {130, 9001, 30000}, {20, 30001, 120000}}},
		Texts: []Text{
			numberedText("docId", Serial, "doc_"),
			randomText("title", Words, 4),
			pooled("collection", "collection-", 120),
			oneOf("format", Choice{"markdown", 600}, Choice{"json", 400}),
			oneOf("language", languages...),
			{Name: "status", Values: []Choice{{"draft", 300}, {"published", 700}},
				Later: []Choice{{"published", 700}, {"archived", 300}}},
			oneOf("visibility", Choice{"public", 750}, Choice{"members", 200}, Choice{"private", 50}),
			oneOf("license", Choice{"CC-BY", 500}, Choice{"CC0", 300}, Choice{"proprietary", 200}),
			randomText("checksum", Hex, 64),
			pooled("author", "author-", 800),
			{Name: "folder", Source: Pooled, Prefix: "folder-", Pool: 50, Missing: 200},
		},
		Numbers: []Number{
			clock("createdAt"), uniform("pages", 1, 60),
			{Name: "revision", Values: Histogram{{1000, 1, 40}}, Varies: true},
		},
	}
}

func listings() Kind {
	return Kind{
		Name: "listing", Count: 32, Runs: Histogram{{700, 1, 1}, {300, 2, 12}}, Accounts: Accounts{2000, 1200},
		Fate: Fate{Persistent: 7, Deleted: 1, DeletedAfter: fewDays},
		Steps: []Step{
			{entity.Update, 100, fewDays},
			{entity.ChangeOwner, 60, fewDays},
		},
		Payload: Payload{Types: []Choice{{"image/jpeg", 7}, {"image/webp", 3}},
			Size: Histogram{{600, 1000, 6000}, {370, 6001, 20000}, {30, 20001, 100000}}},
		Texts: []Text{
			numberedText("listingId", Serial, "item_"),
			randomText("title", Words, 4),
			oneOf("category", Choice{"tools", 300}, Choice{"books", 300}, Choice{"art", 250}, Choice{"other", 150}),
			{Name: "status", Values: []Choice{{"active", 900}, {"reserved", 100}},
				Later: []Choice{{"active", 400}, {"sold", 600}}},
			oneOf("condition", Choice{"new", 350}, Choice{"used", 600}, Choice{"broken", 50}),
			oneOf("currency", Choice{"EUR", 500}, Choice{"USD", 400}, Choice{"GLM", 100}),
			pooled("city", "city-", 90),
			pooled("seller", "seller-", 900),
			oneOf("language", languages...),
			randomText("image", Hex, 64),
		},
		Numbers: []Number{
			{Name: "price", Varies: true, Values: Histogram{{600, 1, 50}, {300, 51, 500}, {100, 501, 20000}}},
			{Name: "stock", Values: Histogram{{800, 1, 1}, {200, 2, 50}}, Varies: true},
			clock("listedAt"),
			{Name: "rating", Values: Histogram{{1000, 1, 5}}, Missing: 300},
		},
	}
}
