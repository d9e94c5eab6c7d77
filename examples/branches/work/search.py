"""Searches a short tour through the places; the argument is the branch, which starts elsewhere."""

import json
import math
import random
import sys
import urllib.request

# The helper of the prepared state runs in each branch.
places = json.load(urllib.request.urlopen("http://127.0.0.1:8000/places.json"))
branch = int(sys.argv[1])
random.seed(branch)
tour = list(range(len(places)))
random.shuffle(tour)


def length(tour):
    return sum(math.dist(places[a], places[b]) for a, b in zip(tour, tour[1:] + tour[:1]))


best = length(tour)
better = True
while better:
    better = False
    for i in range(len(tour) - 1):
        for j in range(i + 2, len(tour) + 1):
            turned = tour[:i] + tour[i:j][::-1] + tour[j:]
            found = length(turned)
            if found < best - 1e-9:
                tour, best, better = turned, found, True
with open("tour.json", "w") as file:
    json.dump({"tour": tour, "length": round(best)}, file)
print(json.dumps({"length": round(best), "branch": branch}))
