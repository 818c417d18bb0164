package server

import (
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// older tells whether an API or product version comes before another, number by number.
func older(version, than string) bool {
	left, right := numbers(version), numbers(than)
	for i := range max(len(left), len(right)) {
		a, b := at(left, i), at(right, i)
		if a != b {
			return a < b
		}
	}
	return false
}

func numbers(version string) []int {
	var parsed []int
	for _, field := range strings.Split(version, ".") {
		number, _ := strconv.Atoi(field)
		parsed = append(parsed, number)
	}
	return parsed
}

func at(values []int, index int) int {
	if index < len(values) {
		return values[index]
	}
	return 0
}

// stableUUID is the same for the same name, so that a lab started twice shows the same hosts.
func stableUUID(name string) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(name)).String()
}
