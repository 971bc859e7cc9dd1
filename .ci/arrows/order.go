package main

import (
	"cmp"
	"slices"
)

// up returns the arrows that point up in the order of the files in which they are fewest.
// The order is found by moving one file after another to where it does best, from several
// beginnings, until no move helps.
func (r room) up() [][2]string {
	best := r.against(r.files)
	for _, order := range r.beginnings() {
		order = r.improve(order)
		if found := r.against(order); len(found) < len(best) {
			best = found
		}
	}
	slices.SortFunc(best, func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
	return best
}

// against lists the arrows that point up in an order, which begins with the top.
func (r room) against(order []string) [][2]string {
	floor := map[string]int{}
	for i, name := range order {
		floor[name] = i
	}
	var up [][2]string
	for arrow := range r.arrows {
		if floor[arrow[1]] < floor[arrow[0]] {
			up = append(up, arrow)
		}
	}
	return up
}

// beginnings returns orders to begin with: by the alphabet, and by how much more a file uses
// than it is used, each also turned at every place.
func (r room) beginnings() [][]string {
	balance := map[string]int{}
	for arrow := range r.arrows {
		balance[arrow[0]]++
		balance[arrow[1]]--
	}
	sorted := slices.Clone(r.files)
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(balance[b], balance[a]) })
	var all [][]string
	for _, order := range [][]string{sorted, r.files} {
		for i := range order {
			all = append(all, slices.Concat(order[i:], order[:i]))
		}
	}
	return all
}

// improve moves files within an order as long as that leaves fewer arrows that point up.
func (r room) improve(order []string) []string {
	for moved := true; moved; {
		moved = false
		for _, name := range r.files {
			from := slices.Index(order, name)
			gain, to := 0, from
			for _, step := range []int{-1, 1} {
				sum := 0
				for i := from + step; i >= 0 && i < len(order); i += step {
					// Past order[i], arrows between the two turn round.
					sum -= step * (r.count(order[i], name) - r.count(name, order[i]))
					if -sum > gain {
						gain, to = -sum, i
					}
				}
			}
			if gain > 0 {
				order = slices.Insert(slices.Delete(slices.Clone(order), from, from+1), to, name)
				moved = true
			}
		}
	}
	return order
}

// count is one if an arrow leads from one file to another, else nothing.
func (r room) count(from, to string) int {
	if _, ok := r.arrows[[2]string{from, to}]; ok {
		return 1
	}
	return 0
}
