package topology

import (
	"fmt"
	"regexp"
	"strconv"
)

var rangePattern = regexp.MustCompile(`^([^\[\]]*)\[(\d+)-(\d+)\]([^\[\]]*)$`)

// mostNames bounds a range, so that a slip of the pen does not fill the memory.
const mostNames = 100_000

// Expand is the list of names a pattern such as "esx-[01-04].lab.test" stands for; digits keep their width.
func Expand(pattern string) ([]string, error) {
	match := rangePattern.FindStringSubmatch(pattern)
	if match == nil {
		if regexp.MustCompile(`[\[\]]`).MatchString(pattern) {
			return nil, fmt.Errorf("%q is no range: write it as esx-[01-04].lab.test", pattern)
		}
		return []string{pattern}, nil
	}
	first, errFirst := strconv.Atoi(match[2])
	last, errLast := strconv.Atoi(match[3])
	if errFirst != nil || errLast != nil || last < first || last-first >= mostNames {
		return nil, fmt.Errorf("the range in %q must rise, by fewer than %d", pattern, mostNames)
	}
	names := make([]string, 0, last-first+1)
	for number := first; number <= last; number++ {
		names = append(names, fmt.Sprintf("%s%0*d%s", match[1], len(match[2]), number, match[4]))
	}
	return names, nil
}
