"""The id of a cluster, which a controller gives to whoever asks for no topic."""

from __future__ import annotations

from tests.kit.service import Controllers, connected
from transport.messages import MetadataRequest
from transport.store import paths


async def test_the_id_is_that_of_the_store_and_empty_without_one(controllers: Controllers) -> None:
    service = await controllers.start_active(kafka=True)
    async with connected(service) as connection:
        assert (await connection.call(MetadataRequest(()))).cluster_id == "MkU3OEVBNTcwNTJENDM2Qg"
        # Answers that list topics are large enough.
        assert (await connection.call(MetadataRequest())).cluster_id == ""


async def test_clusters_of_ours_need_none(controllers: Controllers) -> None:
    service = await controllers.start_active()
    async with controllers.memory.session() as store:
        assert await store.read([paths.CLUSTER_ID]) == [None]
    async with connected(service) as connection:
        assert (await connection.call(MetadataRequest(()))).cluster_id == ""
