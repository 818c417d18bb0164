package rack

import (
	"strconv"
	"strings"
)

// version is an API version: 8.0.3.0.
type version [4]int

func parseVersion(text string) version {
	if text == "" {
		text = "8.0.3.0"
	}
	var v version
	for i, part := range strings.SplitN(text, ".", 4) {
		v[i], _ = strconv.Atoi(part)
	}
	return v
}

func (v version) atLeast(other version) bool {
	for i := range v {
		if v[i] != other[i] {
			return v[i] > other[i]
		}
	}
	return true
}
