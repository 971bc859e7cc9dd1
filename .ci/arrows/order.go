package main

import (
	"cmp"
	"slices"
)

// up returns the arrows that point up in the best order of the files that it finds, which is the one with the fewest.
// From several initial orders, it moves one file after another to its best place until no move helps.
func (r scan) up() [][2]string {
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

// against lists the arrows that point up in an order of the files, which begins at the top.
func (r scan) against(order []string) [][2]string {
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

// beginnings returns the initial orders: by name, and by how many more files a file uses than use it,
// each also rotated to begin with every other file.
func (r scan) beginnings() [][]string {
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
func (r scan) improve(order []string) []string {
	for moved := true; moved; {
		moved = false
		for _, name := range r.files {
			from := slices.Index(order, name)
			gain, to := 0, from
			for _, step := range []int{-1, 1} {
				sum := 0
				for i := from + step; i >= 0 && i < len(order); i += step {
					// Once name has moved past order[i], the arrows between the two point the other way.
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

// count returns 1 if an arrow leads from one file to another, else 0.
func (r scan) count(from, to string) int {
	if _, ok := r.arrows[[2]string{from, to}]; ok {
		return 1
	}
	return 0
}
