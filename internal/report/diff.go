package report

import "strings"

// Diff returns the lines by which two texts differ: those of the first after
// "-", those of the second after "+", and between them one line of what they have
// in common. It is empty for equal texts.
func Diff(before, after string) string {
	if before == after {
		return ""
	}
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	common := commonLines(a, b)
	var out strings.Builder
	quiet := false // the last line written was a common one
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(a) > 0 && (len(common) == 0 || a[0] != common[0]):
			out.WriteString("-" + a[0] + "\n")
			a, quiet = a[1:], false
		case len(b) > 0 && (len(common) == 0 || b[0] != common[0]):
			out.WriteString("+" + b[0] + "\n")
			b, quiet = b[1:], false
		default:
			if !quiet && out.Len() > 0 {
				out.WriteString(" " + a[0] + "\n")
			}
			a, b, common, quiet = a[1:], b[1:], common[1:], true
		}
	}
	return out.String()
}

// commonLines returns the longest common subsequence.
func commonLines(a, b []string) []string {
	length := make([][]int, len(a)+1)
	for i := range length {
		length[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	var common []string
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			common = append(common, a[i])
			i, j = i+1, j+1
		case length[i+1][j] >= length[i][j+1]:
			i++
		default:
			j++
		}
	}
	return common
}
