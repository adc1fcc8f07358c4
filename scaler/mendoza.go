package scaler

import "github.com/varvedb/varve/store/entity"

// Mendoza returns the base profile: a store like Arkiv's test network Mendoza.
// A few of its figures are published, but not its data.
//
// From the published figures are, at scale 1: 800,000 entities in 1,150,000 blocks of 2 seconds (27
// days); 43 % that never expire, 56 % that live 5 minutes to 5 hours, the rest deleted; 15 string
// and 9 numeric attributes and a payload of about 5 KB; 20 million rows; the kinds and the names
// that the read mixes ask for.
//
// Attributes: 20 million rows for 800,000 entities are 25 each, and 15 + 9 + 1 are 25, so the 15
// and 9 were counted in the tables, where the synthetic ones are rows like the user's:
// SyntheticTexts and SyntheticNumbers of them. What remains for the user are 12 and 4; the means
// here are a little less, because of the later versions.
//
// Later versions: the same 25 leave room for one later version to twenty entities, since each
// repeats all rows. So they are rare here; for a store that changes much, use package dcseed.
//
// Entities a block: the published times of 50,000 sampled commits have median
// 4, quartile 6, mean 21, deviation 57 and maximum 598 ms. If a commit takes
// 2.5 ms and 1.5 ms more for each entity, that is a median of 1 entity, quartile
// 2, mean 12, deviation 38 and maximum 397; Batches gives 1, 2, 10, 37 and 400. The two constants
// are a guess; that most blocks are small and a few very large is not.
//
// All else – shares of kinds, values, sizes, accounts, the frequency of changes – is invented, with
// tails as heavy as such things usually have. Each lifetime is drawn for itself, although entities
// created together may well expire together in production.
func Mendoza() Profile {
	return Profile{
		Name:        "mendoza",
		CycleBlocks: 1150,
		Cycles:      1000,
		Batches: Histogram{
			{620, 1, 1}, {150, 2, 2}, {85, 3, 5}, {60, 6, 20}, {38, 21, 60}, {29, 61, 140}, {18, 141, 400},
		},
		Kinds: []Kind{
			proposals(), votes(), chunks(), readings(), nodes(), workloads(), documents(), listings(),
		},
	}
}

// Lifetimes and delays, in blocks of 2 seconds.
const (
	minute = 30
	hour   = 60 * minute
	day    = 24 * hour
)

var (
	always    = Fate{Persistent: 1}
	fewHours  = Histogram{{1000, 5 * minute, 5 * hour}}
	fewDays   = Histogram{{400, 10 * minute, 2 * hour}, {400, 2*hour + 1, day}, {200, day + 1, 3 * day}}
	single    = Histogram{{1000, 1, 1}}
	smallJSON = []Choice{{"application/json", 1}}
	languages = []Choice{{"en", 550}, {"es", 180}, {"de", 120}, {"fr", 90}, {"pl", 60}}
	regions   = []Choice{{"eu-west", 400}, {"us-east", 350}, {"asia-pac", 250}}
)

func oneOf(name string, values ...Choice) Text { return Text{Name: name, Values: values} }

// randomText is an attribute with a value of random digits or words.
func randomText(name string, source TextSource, length int) Text {
	return Text{Name: name, Source: source, Length: length}
}

func pooled(name, prefix string, pool uint64) Text {
	return Text{Name: name, Source: Pooled, Prefix: prefix, Pool: pool}
}

// numberedText is an attribute with a value of a prefix and a number: the
// entity's, or its group's.
func numberedText(name string, source TextSource, prefix string) Text {
	return Text{Name: name, Source: source, Prefix: prefix}
}

func clock(name string) Number { return Number{Name: name, Source: Clock} }

func uniform(name string, from, to uint64) Number {
	return Number{Name: name, Values: Histogram{{1000, from, to}}}
}

// proposals and votes: governance, for the read mix B.
func proposals() Kind {
	return Kind{
		Name: "proposal", Count: 4, Runs: single, Accounts: Accounts{0, 200}, Fate: always,
		// The vote closes when no more votes can refer to the proposal: after 8
		// cycles and the one of its creation.
		Steps: []Step{{entity.Update, 1000, Histogram{{1000, 9 * 1150, 16 * 1150}}}},
		Payload: Payload{Types: []Choice{{"text/markdown", 3}, {"application/json", 1}}, Form: Document,
			Size: Histogram{{500, 800, 3000}, {400, 3001, 9000}, {100, 9001, 40000}}},
		Texts: []Text{
			numberedText("proposalId", Serial, "prop-"),
			projects(),
			{Name: "status", Values: []Choice{{"active", 1}}, Later: []Choice{{"passed", 55}, {"rejected", 45}}},
			randomText("title", Words, 5),
			oneOf("category", Choice{"budget", 35}, Choice{"policy", 30}, Choice{"election", 10}, Choice{"technical", 25}),
			oneOf("quorumRule", Choice{"majority", 70}, Choice{"two-thirds", 30}),
			oneOf("language", languages...),
			randomText("discussion", Hex, 32),
			{Name: "tag", Source: Pooled, Prefix: "tag-", Pool: 40, Missing: 300},
			randomText("summary", Words, 9),
			pooled("district", "district-", 30),
		},
		Numbers: []Number{
			clock("createdAt"), uniform("quorum", 10, 5000), uniform("durationHours", 24, 336),
			{Name: "turnout", Values: Histogram{{1000, 0, 10000}}, Varies: true},
		},
	}
}

func projects() Text {
	return oneOf("project", Choice{"CivicCommit", 700}, Choice{"AgoraCouncil", 200}, Choice{"ParkBoard", 100})
}

func votes() Kind {
	return Kind{
		Name: "vote", Count: 196, Runs: Histogram{{900, 1, 1}, {100, 2, 6}}, Accounts: Accounts{0, 5000}, Fate: always,
		Steps: []Step{{entity.Update, 5, Histogram{{1000, 1, 4 * hour}}}},
		Payload: Payload{Types: smallJSON, Form: Document,
			Size: Histogram{{800, 200, 700}, {190, 701, 2500}, {10, 2501, 10000}}},
		Texts: []Text{
			{Name: "proposalKey", Source: Key, Of: "proposal", Window: 32, Hot: 400},
			projects(),
			{Name: "choice", Values: []Choice{{"yes", 520}, {"no", 360}, {"abstain", 120}},
				Later: []Choice{{"yes", 300}, {"no", 300}, {"abstain", 400}}},
			{Name: "ballotId", Source: Serial, Prefix: "ballot-", Digits: 8},
			oneOf("method", Choice{"plain", 800}, Choice{"quadratic", 150}, Choice{"delegated", 50}),
			oneOf("client", Choice{"web", 600}, Choice{"mobile", 330}, Choice{"cli", 70}),
			oneOf("region", regions...),
			oneOf("language", languages...),
			randomText("receipt", Hex, 64),
			{Name: "comment", Source: Words, Length: 6, Missing: 700},
		},
		Numbers: []Number{
			clock("castAt"),
			{Name: "weight", Values: Histogram{{700, 1, 1}, {200, 2, 10}, {90, 11, 100}, {10, 101, 5000}}},
			uniform("round", 1, 3),
		},
	}
}

// chunks and readings: streams, for the read mix C. The chunks of a run form a
// video; each names the next.
func chunks() Kind {
	return Kind{
		Name: "video-chunk", Count: 240, Runs: Histogram{{300, 2, 8}, {500, 9, 30}, {200, 31, 80}},
		Accounts: Accounts{100, 600},
		Fate:     Fate{Ephemeral: 1, Lifetime: fewHours},
		Steps:    []Step{{entity.ExtendBTL, 20, Histogram{{1000, 1, 2 * hour}}}},
		Payload: Payload{Types: []Choice{{"video/mp4", 8}, {"application/octet-stream", 2}},
			Size: Histogram{{250, 1000, 6000}, {500, 6001, 14000}, {200, 14001, 24000}, {50, 24001, 64000}}},
		Texts: []Text{
			numberedText("blockId", Serial, "chunk_"),
			{Name: "nextBlockId", Source: Next},
			numberedText("videoId", Group, "video_"),
			randomText("title", Words, 3),
			oneOf("codec", Choice{"h264", 700}, Choice{"vp9", 200}, Choice{"av1", 100}),
			oneOf("resolution", Choice{"480p", 250}, Choice{"720p", 400}, Choice{"1080p", 300}, Choice{"2160p", 50}),
			oneOf("language", languages...),
			randomText("checksum", Hex, 64),
			pooled("channel", "channel-", 400),
			oneOf("region", regions...),
			{Name: "drm", Missing: 700, Values: []Choice{{"clear", 1}, {"sealed", 1}}},
		},
		Numbers: []Number{
			{Name: "seq", Source: Position}, uniform("durationMs", 1000, 6000), uniform("bitrateKbps", 400, 8000),
			{Name: "viewers", Values: Histogram{{600, 0, 20}, {300, 21, 500}, {100, 501, 20000}}, Missing: 500},
		},
	}
}

func readings() Kind {
	return Kind{
		Name: "sensor_data", Count: 176, Runs: Histogram{{500, 1, 1}, {400, 2, 10}, {100, 11, 60}},
		Accounts: Accounts{300, 900},
		Fate:     Fate{Ephemeral: 1, Lifetime: fewHours},
		Payload: Payload{Types: []Choice{{"application/json", 7}, {"application/octet-stream", 3}}, Form: Document,
			Size: Histogram{{700, 128, 800}, {280, 801, 2000}, {20, 2001, 9000}}},
		Texts: []Text{
			pooled("sensor", "sensor-", 2000),
			oneOf("metric", Choice{"temperature", 400}, Choice{"humidity", 250}, Choice{"pressure", 200}, Choice{"co2", 150}),
			oneOf("unit", Choice{"C", 400}, Choice{"%", 250}, Choice{"hPa", 200}, Choice{"ppm", 150}),
			pooled("site", "site-", 60),
			pooled("gateway", "gw-", 250),
			oneOf("status", Choice{"ok", 940}, Choice{"warning", 50}, Choice{"fault", 10}),
			pooled("firmware", "fw-1.", 12),
			oneOf("quality", Choice{"raw", 700}, Choice{"calibrated", 300}),
			numberedText("batchId", Group, "batch_"),
			oneOf("region", regions...),
			randomText("signature", Hex, 64),
			{Name: "note", Source: Words, Length: 3, Missing: 600},
		},
		Numbers: []Number{
			clock("ts"), uniform("reading", 0, 10000), uniform("battery", 0, 100),
			{Name: "uncertainty", Values: Histogram{{1000, 1, 50}}, Missing: 500},
		},
	}
}
