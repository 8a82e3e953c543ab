"""The answers of a controller to requests: from its queue, from reads beside it, and from what else is at hand."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field
from msgspec.structs import replace

from controller.config import ControllerConfig
from controller.node import admission, dispatch
from controller.node.many_moves import REQUESTS_PER_EVENT, in_parts
from controller.node.office import Office
from controller.node.quarantine import Quarantine
from controller.node.reads import Reads
from controller.node.waiting_requests import WaitingRequests
from controller.observation.commit_trace import CommitTrace
from transport import messages
from transport.host import Host
from transport.store.cluster_id import ClusterId
from transport.wire import Handlers


@define
class Answers:
    """Answers requests, with the office of the moment."""

    config: ControllerConfig
    host: Host
    trace: CommitTrace
    _requests: WaitingRequests
    _quarantine: Quarantine
    _office: Callable[[], Office | None]
    _cluster_id: ClusterId
    _reads: Reads = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._reads = Reads(self._requests.answer, self._office, self.host)

    def handlers(self) -> Handlers:
        """Return the handlers of all requests."""
        return {
            **dict.fromkeys(dispatch.REQUESTS, self.answer),
            messages.CommitTraceRequest: self._read_trace,
            messages.DescribeClusterRequest: self._describe_cluster,
            messages.DescribeReassignmentsRequest: self._describe_reassignments,
            messages.MetadataRequest: self._read_metadata,
        }

    async def answer(self, request: messages.Request[object]) -> object:
        """Answer a request (see `Reads`). Raises ApiError (see `WaitingRequests`)."""
        if isinstance(request, messages.AlterPartitionReassignmentsRequest):
            most = self.config.request_limits.operations_in(REQUESTS_PER_EVENT)
            return await in_parts(self._requests.answer, request, most)
        return await self._reads.answer(request)

    async def _read_trace(self, request: messages.CommitTraceRequest) -> messages.CommitTraceResponse:
        max_wait = admission.seconds_of("max_wait_ms", request.max_wait_ms)
        return await self.trace.read(request.sequence, max_wait)

    async def _describe_cluster(self, request: messages.DescribeClusterRequest) -> messages.DescribeClusterResponse:
        """Answer from the context, and add what is in this process's quarantine."""
        described = await self.answer(request)
        assert isinstance(described, messages.DescribeClusterResponse)
        return replace(described, quarantined=self._quarantine.names())

    async def _read_metadata(self, request: messages.MetadataRequest) -> messages.MetadataResponse:
        """Answer from the context. A request for no topic also gets the id that a cluster of Kafka brokers has."""
        described = await self.answer(request)
        assert isinstance(described, messages.MetadataResponse)
        if request.topics != () or not self.config.kafka:
            return described
        return replace(described, cluster_id=await self._cluster_id.read() or "")

    async def _describe_reassignments(
        self, request: messages.DescribeReassignmentsRequest
    ) -> messages.DescribeReassignmentsResponse:
        """Answer from the context, and add the log sizes that brokers report."""
        described, office = await self._reads.describe_moves(request), self._office()
        return described if office is None else await office.progress.add_to(described)
