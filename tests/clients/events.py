"""Sends CloudEvents with the package `cloudevents` in its modes, and a list of them.

events.py URL: the path of events.
"""

import json
import sys
import urllib.request

from cloudevents.core.bindings.http import to_binary_event, to_structured_event
from cloudevents.core.v1.event import CloudEvent

(url,) = sys.argv[1:]


def event(number):
    attributes = {"id": str(number), "source": "/clients", "type": "changed", "subject": "thing"}
    return CloudEvent({**attributes, "datacontenttype": "application/json"}, {"number": number})


def send(headers, body):
    request = urllib.request.Request(url, data=body, headers=headers, method="POST")
    with urllib.request.urlopen(request, timeout=60) as response:
        assert response.status == 202, response.status
        return json.load(response)


structured, binary = to_structured_event(event(1)), to_binary_event(event(2))
assert send(structured.headers, structured.body)["events"] == 1
assert send(binary.headers, binary.body)["events"] == 1
batch = b"[" + b",".join(to_structured_event(event(number)).body for number in (3, 4)) + b"]"
assert send({"content-type": "application/cloudevents-batch+json"}, batch)["events"] == 2
# The same once more counts once.
assert send(structured.headers, structured.body)["events"] == 1
print("done")
