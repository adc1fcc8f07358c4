// Package result is what measurements leave behind: records of runs with their
// distributions, timelines and raw observations, and manifests of what they ran
// on. Records are written one by one as they are made, so that a crash loses
// nothing that was measured before it. It knows neither stores nor engines.
package result
