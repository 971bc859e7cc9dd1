// Package spelling finds the known word that a misspelled word was probably meant to be.
package spelling

import "strings"

// maxWordLength limits the length of the words that are compared, in bytes, because the time grows with
// the square of the length; no name is longer.
const maxWordLength = 100

// Nearest returns the known word that word probably misspells; "" if none is near. It ignores case.
func Nearest(word string, known []string) string {
	if len(word) > maxWordLength {
		return ""
	}
	best, least := "", max(2, len(word)/3)+1
	for _, k := range known {
		if d := Distance(strings.ToLower(word), strings.ToLower(k)); d < least && d < len(k) {
			best, least = k, d
		}
	}
	return best
}

// Distance returns how many bytes have to be inserted, deleted, changed or swapped to turn a into
// b.
func Distance(a, b string) int {
	older, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		older, prev, row = prev, row, older
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := prev[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(prev[j]+1, row[j-1]+1, change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
